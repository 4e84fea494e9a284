package job

import "testing"

// BenchmarkCapture is what keeping a guest's output costs, a full pipe at a
// time, once the head and the tail are there.
func BenchmarkCapture(b *testing.B) {
	c := NewCapture(DefaultLimits().Stdout)
	piece := make([]byte, 64<<10)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		_, _ = c.Write(piece)
	}
}
