package web

import (
	"strings"
	"testing"
)

// BenchmarkLook is what it costs to find out who handles a call with a file of 4 MiB.
func BenchmarkLook(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"x","text":"` + strings.Repeat("some text\\n", 4<<20/11) + `"}}}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, refused := look(body); refused != nil {
			b.Fatal(refused)
		}
	}
}
