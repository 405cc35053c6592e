package main

import (
	"testing"

	"github.com/elfhost/elfhost/internal/plugintest"
)

func TestMain(m *testing.M) { plugintest.Main(m) }
