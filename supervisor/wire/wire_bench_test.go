package wire

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// BenchmarkFrames is what reading a run's frames costs, by the bytes of its
// value.
func BenchmarkFrames(b *testing.B) {
	for _, size := range []int{10, 1 << 20} {
		b.Run(fmt.Sprintf("value of %d bytes", size), func(b *testing.B) {
			frames := fmt.Appendf(nil, "%s{\"type\":\"result\",\"value\":\"%s\"}\n", ready, bytes.Repeat([]byte("x"), size))
			b.SetBytes(int64(len(frames)))
			for b.Loop() {
				if o := ReadOutcome(NewFrameReader(bytes.NewReader(frames), 2<<20), nil, nil); o.Err != nil || o.Result == nil {
					b.Fatalf("%+v", o)
				}
			}
		})
	}
}

// BenchmarkRequest is what sending a program costs, by its bytes.
func BenchmarkRequest(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		b.Run(fmt.Sprintf("program of %d bytes", size), func(b *testing.B) {
			request := map[string]any{"code": string(bytes.Repeat([]byte("x = 1\n"), size/6))}
			b.SetBytes(int64(size))
			for b.Loop() {
				if err := WriteRequest(io.Discard, request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
