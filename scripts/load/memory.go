//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// times are how long calls took.
type times struct {
	whole []time.Duration // from the request to the answer, waiting for a place included
	own   []time.Duration // of the program itself
}

func (t times) String() string {
	return fmt.Sprintf("%v, %v (%v, %v)", quantile(t.whole, 50), quantile(t.whole, 99), quantile(t.own, 50), quantile(t.own, 99))
}

// quantile is what so many of a hundred are not above.
func quantile(list []time.Duration, percent int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond)
}

// mostGrowth is by how much the mean of the last quarter's memory may be above that of
// the second one's. In the first one a server still warms up.
const mostGrowth = 24 << 20

// memory is what a server's process uses, each second.
type memory struct {
	mu      sync.Mutex
	samples []int64
}

func (m *memory) watch(ctx context.Context, pid int) {
	go func() {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				if size, err := resident(pid); err == nil {
					m.mu.Lock()
					m.samples = append(m.samples, size)
					m.mu.Unlock()
				}
			}
		}
	}()
}

// forget has what follows alone count.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = nil
}

// quarters are the means of a fourth of the time each.
func (m *memory) quarters() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.samples) < 4 {
		return m.samples
	}
	var means []int64
	for part := range slices.Chunk(m.samples[len(m.samples)%4:], len(m.samples)/4) {
		var sum int64
		for _, size := range part {
			sum += size
		}
		means = append(means, sum/int64(len(part)))
	}
	return means
}

func (m *memory) growth() int64 {
	q := m.quarters()
	if len(q) < 4 {
		return 0
	}
	return q[3] - q[1]
}

// resident is how much memory a process has of its own, in bytes.
func resident(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	var kB int64
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			if _, err := fmt.Sscan(rest, &kB); err != nil {
				return 0, err
			}
		}
	}
	return kB << 10, nil
}
