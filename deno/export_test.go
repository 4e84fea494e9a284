package deno

// LimitUnpacked lets a test have what unpacks to too much without unpacking much.
func (e *Engine) LimitUnpacked(bytes int64) { e.planner.Unpacked = bytes }
