package launcher

// raise does nothing: Deno's own permissions are the only wall here, and
// Offered says so.
func (w *Wall) raise() error { return nil }

// Offered says that there is no second wall on this system.
func Offered() Support {
	return Support{Detail: "there is no second wall on this system yet; Deno's permissions are the boundary"}
}
