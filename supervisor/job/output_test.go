package job

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		budget := int64(2 + 2*random.IntN(40))
		c := NewCapture(budget)
		var all []byte
		for range random.IntN(12) {
			chunk := make([]byte, random.IntN(60))
			for i := range chunk {
				chunk[i] = byte(random.Uint32())
			}
			all = append(all, chunk...)
			if n, err := c.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		got := c.Captured()
		if int64(len(got.Head)+len(got.Tail))+got.Omitted != int64(len(all)) {
			t.Fatalf("%d kept, %d left out, of %d", len(got.Head)+len(got.Tail), got.Omitted, len(all))
		}
		if int64(len(got.Head)+len(got.Tail)) > budget {
			t.Fatalf("kept %d bytes of a budget of %d", len(got.Head)+len(got.Tail), budget)
		}
		if int64(len(all)) <= budget && got.Omitted != 0 {
			t.Fatalf("left out %d bytes of %d with a budget of %d", got.Omitted, len(all), budget)
		}
		if !bytes.HasPrefix(all, got.Head) || !bytes.HasSuffix(all, got.Tail) {
			t.Fatalf("head or tail is not that of the stream")
		}
	}
}

func TestCapturedSaysWhatIsLeftOut(t *testing.T) {
	c := NewCapture(8)
	_, _ = c.Write([]byte("abcdEFGHIJwxyz"))
	if got := c.Captured().String(); !strings.Contains(got, "6 bytes left out") || !strings.HasPrefix(got, "abcd") || !strings.HasSuffix(got, "wxyz") {
		t.Errorf("String() = %q", got)
	}
}
