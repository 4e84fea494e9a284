package sandbox

import "sync"

// meter keeps what was seen of a child's memory.
type meter struct {
	mu       sync.Mutex
	baseline int64
	largest  int64
}

// memory is what a process uses at one moment, in bytes.
type memory struct {
	// own is what the process does not share with files (its heaps, stacks and
	// shared memory); peak is the largest resident size that it ever had.
	own, peak int64
}

func (m *meter) markBaseline(pid int) {
	if now, ok := readMemory(pid); ok {
		m.mu.Lock()
		m.baseline, m.largest = now.own, max(m.largest, now.peak)
		m.mu.Unlock()
	}
}

// see takes note of the child's memory and says how much it uses above its
// baseline; false when it can't be told any more.
func (m *meter) see(pid int) (int64, bool) {
	now, ok := readMemory(pid)
	if !ok {
		return 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.largest = max(m.largest, now.peak)
	return now.own - m.baseline, true
}

// seen is the largest resident size that was seen.
func (m *meter) seen() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.largest
}
