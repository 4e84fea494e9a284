package launcher

// Offered says that there is no second wall on this system.
func Offered() Support {
	return Support{Detail: "there is no second wall on this system yet; Deno's permissions are the boundary"}
}
