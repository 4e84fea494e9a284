package workspace

import "sync"

// Quota bounds the bytes that several workspaces hold together. What a guest has
// written since its workspace was measured last is not in it.
type Quota struct {
	most int64

	mu   sync.Mutex
	held map[*Dir]int64 // of those that are open
}

// NewQuota makes a quota of so many bytes.
func NewQuota(most int64) *Quota { return &Quota{most: most, held: map[*Dir]int64{}} }

// hold notes what d holds, or is about to. More than fits is refused, and then not
// noted unless it is there already.
func (q *Quota) hold(d *Dir, bytes int64, there bool) (all int64, fits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all = bytes
	for other, held := range q.held {
		if other != d {
			all += held
		}
	}
	fits = all <= q.most
	if _, open := q.held[d]; open && (fits || there) { // it may have been closed since it was measured
		q.held[d] = bytes
	}
	return all, fits
}

// join has the quota know d, which is empty or measured later.
func (q *Quota) join(d *Dir) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held[d] = 0
}

// leave forgets d.
func (q *Quota) leave(d *Dir) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.held, d)
}

// WithinQuota measures the workspace, and says whether it and the others of its quota
// hold no more than they may.
func (d *Dir) WithinQuota() bool {
	if d.options.Quota == nil {
		return true
	}
	used, err := d.Usage()
	if err != nil {
		return true // it is closed
	}
	_, fits := d.options.Quota.hold(d, used.Bytes, true)
	return fits
}
