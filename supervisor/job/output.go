package job

import "fmt"

// Captured is what was kept of one of the guest's streams: all of it, or its
// beginning and its end with the number of bytes left out between.
type Captured struct {
	Head, Tail []byte
	// Omitted counts the bytes between Head and Tail that were not kept.
	Omitted int64
}

// String joins what was kept; where bytes were left out it says how many.
func (c Captured) String() string {
	if c.Omitted == 0 {
		return string(c.Head) + string(c.Tail)
	}
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", c.Head, c.Omitted, c.Tail)
}

// Capture keeps the first and the last half of a byte budget of what is written
// to it, so that a stream of any length costs no more than the budget.
type Capture struct {
	half  int
	head  []byte
	ring  []byte // the last half bytes after head, a ring once it is full
	start int    // where the oldest byte of a full ring stands
	total int64
}

func NewCapture(budget int64) *Capture {
	return &Capture{half: int(max(budget/2, 1))}
}

func (c *Capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := c.half - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	if room := c.half - len(c.ring); room > 0 {
		take := min(room, len(p))
		c.ring = append(c.ring, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		done := copy(c.ring[c.start:], p)
		c.start = (c.start + done) % c.half
		p = p[done:]
	}
	return n, nil
}

func (c *Capture) Captured() Captured {
	tail := make([]byte, 0, len(c.ring))
	tail = append(append(tail, c.ring[c.start:]...), c.ring[:c.start]...)
	return Captured{Head: c.head, Tail: tail, Omitted: c.total - int64(len(c.head)) - int64(len(tail))}
}
