package pdk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/elfhost/elfhost/abi"
)

// CallTool calls another tool through the host, which checks, asks and clips
// as for any call. It needs the capability tool.call for that tool, and the
// call has no more rights than this one. args is a struct or map. A tool's own
// failure is a Result with IsError.
func CallTool(ctx context.Context, name string, args any) (abi.Result, error) {
	input, err := json.Marshal(args)
	if err != nil {
		return abi.Result{}, fmt.Errorf("encoding the arguments of %q: %w", name, err)
	}
	header := struct {
		Tool string `json:"tool"`
	}{name}
	body, err := opToolCall.do(ctx, header, input, nil)
	if err != nil {
		return abi.Result{}, err
	}
	var r abi.Result
	if err := json.Unmarshal(body, &r); err != nil {
		return abi.Result{}, fmt.Errorf("decoding the answer of %q: %w", name, err)
	}
	return r, nil
}
