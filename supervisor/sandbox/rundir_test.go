package sandbox

import (
	"os"
	"sync"
	"testing"
)

// A server that starts removes what dead ones left, and nothing of those that
// start at the same time.
func TestServersThatStartTogetherKeepTheirDirectories(t *testing.T) {
	base := t.TempDir()
	made := make(chan struct{})
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			for {
				select {
				case <-made:
					return
				default:
					removeStale(base)
				}
			}
		})
	}
	for range 300 {
		dir, lock, err := newLockedDir(base)
		if err != nil {
			t.Fatal(err)
		}
		removeStale(base)
		if _, err := os.Stat(dir); err != nil {
			t.Fatalf("the directory of a living server is gone: %v", err)
		}
		_ = lock.Close() // from here on it is a dead one's
	}
	close(made)
	others.Wait()
	removeStale(base)
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		t.Errorf("left of dead servers: %v %v", left, err)
	}
}
