package bench
import ("testing";"context";"io";"os")
func BenchmarkStep(b *testing.B){ for b.Loop() { if err:=agentStep(context.Background(),os.Stderr,b.TempDir());err!=nil{b.Fatal(err)} } ; _ = io.Discard}
func BenchmarkResume(b *testing.B){ for b.Loop() { if err:=agentResume(context.Background(),os.Stderr,b.TempDir());err!=nil{b.Fatal(err)} } }
