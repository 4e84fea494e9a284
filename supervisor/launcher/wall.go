package launcher

// Wall is what the kernel lets a child reach, whatever Deno's own checks say.
// It must allow all that the child's Deno flags allow and its runtime needs;
// the zero value allows the system's libraries and certificates alone.
type Wall struct {
	// ReadOnly are files and directories that the child may read, WriteOnly
	// those that it may change, ReadWrite those that it may both read and
	// change. Missing ones are passed over.
	ReadOnly  []string `json:"read_only,omitempty"`
	WriteOnly []string `json:"write_only,omitempty"`
	ReadWrite []string `json:"read_write,omitempty"`
	// Connect are the TCP ports that the child may connect to.
	Connect []uint16 `json:"connect,omitempty"`
	// Listen lets the child listen on a TCP port of the system's choice.
	Listen bool `json:"listen,omitempty"`
	// AnyNetwork lets the child connect to and listen on any port.
	AnyNetwork bool `json:"any_network,omitempty"`
	// Processes lets the child start processes; without it, only threads.
	Processes bool `json:"processes,omitempty"`
}

// Support says what second wall this machine offers.
type Support struct {
	// Name is the means ("Landlock"), empty when there is none.
	Name string
	// Detail is its version, or why there is none.
	Detail string
}
