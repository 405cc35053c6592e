package skillhub

import (
	"encoding/json"
	"fmt"

	"github.com/elfhost/elfhost/abi"
)

// ToolsDigest covers everything that a model is told of tools: names, texts and
// schemas, in their order. It is "" for none.
func ToolsDigest(tools []abi.ToolDecl) (Digest, error) {
	if len(tools) == 0 {
		return "", nil
	}
	b, err := json.Marshal(tools)
	if err != nil {
		return "", fmt.Errorf("the tools' definitions: %w", err)
	}
	return DigestOf(b), nil
}
