package deno

import "time"

// What V8 compiles is all there also on a busy machine.
func init() { compileTime = time.Minute }

// LimitUnpacked lets a test have what unpacks to too much without unpacking much.
func (e *Engine) LimitUnpacked(bytes int64) { e.planner.Unpacked = bytes }
