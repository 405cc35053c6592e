package search

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkScan measures the engine alone, without the tree.
func BenchmarkScan(b *testing.B) {
	var text []byte
	names, _ := filepath.Glob(filepath.Join(goroot(b), "src/net/http/*.go"))
	for _, n := range names {
		t, err := os.ReadFile(n)
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, t...)
	}
	for _, expr := range []string{"ZZnoSuch", "(?i)zznosuch|qqnosuch", `[A-Z]{10,}`, `a.*b.*c.*d.*e.*f`, `}$`, "e", `\w+\s+\d{5}`, `(?:read|write|open)(?:File|Dir)\b`} {
		b.Run(expr, func(b *testing.B) {
			m, err := compile(pattern{exprs: []string{expr}})
			if err != nil {
				b.Fatal(err)
			}
			s := m.scanner()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !s.reset(text) {
					continue
				}
				for at := 0; ; {
					_, end, ok := s.next(at)
					if !ok {
						break
					}
					at = end + 1
				}
			}
		})
	}
}
