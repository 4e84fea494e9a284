package launcher

import (
	"fmt"
	"reflect"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a child does between its fork and execve is a list of system calls, made
// before the fork and only read after it: a forked thread of the Go runtime can
// do little else.

// call is one system call of a child on its way to execve.
type call struct {
	step   step   // what it is for
	about  string // the path that it is about, if there is one
	number uintptr
	args   [6]uintptr
	// takes are earlier calls whose results are arguments of this one.
	takes [6]*call
	// gives is where the result goes.
	gives *int32
	// fine is an error that is as good as none, and must be one that has to come.
	fine, must syscall.Errno
	// seen is what fstat says; the call fails with ESTALE unless it is judged.
	seen, judged *unix.Stat_t
}

// anyError is as good as none where what a call does is an addition.
const anyError = ^syscall.Errno(0)

// step is what a call is for, in the words of an error.
type step string

const (
	stepGroup       step = "make a process group"
	stepParent      step = "tie its life to ours"
	stepCgroup      step = "join its cgroup"
	stepNice        step = "lower its priority"
	stepUser        step = "become nobody"
	stepPlace       step = "find what it is to see"
	stepRoot        step = "make its root"
	stepEnter       step = "enter its root"
	stepNetwork     step = "make its network"
	stepHand        step = "hand over its sockets"
	stepDirectory   step = "enter its directory"
	stepDescriptors step = "close inherited descriptors"
	stepLimits      step = "set its limits"
	stepPrivileges  step = "give up privileges"
	stepWall        step = "raise the second wall"
	stepFilter      step = "load the system call filter"
	stepExecute     step = "execute it"
)

// calls collects the system calls of one child.
type calls struct {
	list []*call
	// kept holds what the arguments point to; the garbage collector can't see it there.
	kept []any
	err  error // the first
}

// add adds a call. An argument is a number, a string, a pointer to memory that the
// kernel reads or writes, or an earlier call, which stands for its result.
func (c *calls) add(s step, number uintptr, args ...any) *call {
	added := &call{step: s, number: number, gives: new(int32)}
	for i, arg := range args {
		switch arg := arg.(type) {
		case int:
			added.args[i] = uintptr(arg)
		case uintptr:
			added.args[i] = arg
		case *call:
			added.takes[i] = arg
		case string:
			text, err := unix.BytePtrFromString(arg)
			if err != nil && c.err == nil {
				c.err = fmt.Errorf("%q: %w", arg, err)
			}
			added.args[i] = c.hold(text)
		default:
			added.args[i] = c.hold(arg)
		}
	}
	c.list = append(c.list, added)
	return added
}

// hold gives the address that a pointer holds, and keeps what is there.
func (c *calls) hold(pointer any) uintptr {
	c.kept = append(c.kept, pointer)
	return reflect.ValueOf(pointer).Pointer()
}

// on tells the path that the call is about.
func (c *call) on(path string) *call { c.about = path; return c }
