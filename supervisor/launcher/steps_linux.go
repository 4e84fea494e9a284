package launcher

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a child does between its fork and execve is a list of system calls, made
// before the fork and only read after it: a forked thread of the Go runtime can
// do little else. The list says nothing of how the process is made, so that any
// process that can read it can put itself behind the wall.

// call is one system call of a child on its way to execve.
type call struct {
	step   step // what it is for
	number uintptr
	args   [6]uintptr
	// takes are arguments that earlier calls have given.
	takes [2]taken
	// gives is where the result goes.
	gives *int32
	// fine is an error that is as good as none, and must be one that has to come.
	fine, must syscall.Errno
	// seen is set where the call is none, but fails with ESTALE unless what was seen
	// is what was judged.
	seen *seen
}

// anyError is as good as none where what a call does is an addition.
const anyError = ^syscall.Errno(0)

// seen is a file that a child has looked at, and the one that it has to be.
type seen struct {
	stat          unix.Stat_t
	device, inode uint64
}

// taken puts the result of an earlier call in the place of an argument.
type taken struct {
	argument int
	from     *int32
}

// step is what a call is for, in the words of an error.
type step uint8

const (
	stepGroup step = iota
	stepParent
	stepCgroup
	stepNice
	stepUser
	stepPlace
	stepRoot
	stepEnter
	stepNetwork
	stepHand
	stepDirectory
	stepDescriptors
	stepLimits
	stepSignals
	stepPrivileges
	stepWall
	stepFilter
	stepExecute
)

var stepNames = [...]string{
	stepGroup:       "make a process group",
	stepParent:      "tie its life to ours",
	stepCgroup:      "join its cgroup",
	stepNice:        "lower its priority",
	stepUser:        "become nobody",
	stepPlace:       "find what it is to see",
	stepRoot:        "make its root",
	stepEnter:       "enter its root",
	stepNetwork:     "make its network",
	stepHand:        "hand over its sockets",
	stepDirectory:   "enter its directory",
	stepDescriptors: "close inherited descriptors",
	stepLimits:      "set its limits",
	stepSignals:     "ignore SIGXFSZ",
	stepPrivileges:  "give up privileges",
	stepWall:        "raise the second wall",
	stepFilter:      "load the system call filter",
	stepExecute:     "execute it",
}

// calls collects the system calls of one child.
type calls struct {
	list []call
	// about says for a call, by its index, what it is about: a path.
	about map[int]string
	// kept holds what the arguments point to; the garbage collector can't see it there.
	kept []any
	err  error // the first
}

// add adds a call; the returned call may be changed until the next.
func (c *calls) add(s step, number uintptr, args ...uintptr) *call {
	c.list = append(c.list, call{step: s, number: number})
	last := &c.list[len(c.list)-1]
	copy(last.args[:], args)
	return last
}

// on tells what the last call is about.
func (c *calls) on(what string) { c.about[len(c.list)-1] = what }

// take has an argument be what an earlier call gives.
func (c *call) take(argument int, from *int32) *call {
	at := 0
	if c.takes[0].from != nil {
		at = 1
	}
	c.takes[at] = taken{argument, from}
	return c
}

func (c *call) give(to *int32) *call { c.gives = to; return c }

func (c *call) allow(e syscall.Errno) *call { c.fine = e; return c }

// text is the address of a string's bytes with a NUL after them.
func (c *calls) text(s string) uintptr {
	b, err := unix.BytePtrFromString(s)
	if err != nil {
		if c.err == nil {
			c.err = fmt.Errorf("%q: %w", s, err)
		}
		return 0
	}
	return hold(c, b)
}

// hold gives the address of what a call points to, and keeps it where it is.
func hold[T any](c *calls, p *T) uintptr {
	c.kept = append(c.kept, p)
	return uintptr(unsafe.Pointer(p))
}

// result is a place for a call's result.
func (c *calls) result() *int32 {
	r := new(int32)
	*r = -1
	c.kept = append(c.kept, r)
	return r
}

// atCWD is AT_FDCWD as an argument.
var atCWD = func() uintptr { at := unix.AT_FDCWD; return uintptr(at) }()
