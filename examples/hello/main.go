package main

import (
	"context"

	"github.com/elfhost/elfhost/pdk"
)

type args struct {
	Name string `json:"name" desc:"Who to greet."`
}

func init() { pdk.Tool(pdk.Spec{Name: "hello", Description: "Greets somebody by name."}, hello) }

func hello(_ context.Context, in args) (string, error) { return "Hello, " + in.Name + "!", nil }

func main() { pdk.Main() }
