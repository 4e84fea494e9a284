package launcher

import (
	"fmt"
	"reflect"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a child does between fork and execve is a list of system calls. It is prepared
// before the fork and only read after it, because a forked thread of the Go runtime can
// neither allocate nor take a lock.

// call is one system call of a child on its way to execve.
type call struct {
	step   step   // what it is for
	about  string // the path that it is about, if there is one
	number uintptr
	args   [6]uintptr
	// uses are the earlier calls whose results take the place of args.
	uses [6]*call
	// result is where the child writes what the call returned.
	result *int32
	// want is the error that the call must fail with, ignored one that it may.
	want, ignored syscall.Errno
	// seen is what fstat wrote; the call fails with ESTALE unless it is the same file
	// as judged.
	seen, judged *unix.Stat_t
}

// anyError ignores every error of a call that the child can do without.
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

// calls are the system calls of one child, in order.
type calls struct {
	list []*call
	// kept holds what the arguments point to, which the garbage collector doesn't see.
	kept []any
	err  error // the first
}

// add adds a call. An argument is a number, a string, a pointer to memory that the
// kernel reads or writes, or an earlier call, which stands for its result.
func (c *calls) add(s step, number uintptr, args ...any) *call {
	added := &call{step: s, number: number, result: new(int32)}
	for i, arg := range args {
		switch arg := arg.(type) {
		case int:
			added.args[i] = uintptr(arg)
		case uintptr:
			added.args[i] = arg
		case *call:
			added.uses[i] = arg
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

// hold returns a pointer as a number, and keeps what it points to.
func (c *calls) hold(pointer any) uintptr {
	c.kept = append(c.kept, pointer)
	return reflect.ValueOf(pointer).Pointer()
}

// on sets the path that the call is about.
func (c *call) on(path string) *call { c.about = path; return c }
