package launcher

import (
	"syscall"
	"unsafe"
)

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

//go:linkname enterSystemCall runtime.entersyscall
func enterSystemCall()

//go:linkname exitSystemCall runtime.exitsyscall
func exitSystemCall()

// rawVforkSyscall is the standard library's. The child runs on this stack, while the
// thread that called it waits for the child's execve or end, as with vfork(2).
//
//go:noescape
func rawVforkSyscall(trap, a1, a2, a3 uintptr) (r1 uintptr, err syscall.Errno)

// fork starts the child, which shares this process's memory until its execve: that
// spares a copy of our page tables and of each page that we write to meanwhile (2 ms).
// In the child it never returns. Only this thread of the Go runtime goes on there, so it
// makes nothing but system calls, and writes nothing but its own variables, of which the
// parent uses none, and the results of calls.
//
//go:noinline
//go:norace
func (f *plan) fork() (int, syscall.Errno) {
	var failed failure
	enterSystemCall() // the runtime need not wait for this thread, however long the child takes
	beforeFork()
	// The child's process ID is in f.child before the child begins.
	pid, refused := rawVforkSyscall(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD)|syscall.CLONE_VM|syscall.CLONE_VFORK|syscall.CLONE_PARENT_SETTID|f.flags, 0, uintptr(unsafe.Pointer(&f.child)))
	if refused != 0 || pid != 0 {
		afterFork()
		exitSystemCall()
		return int(pid), refused
	}
	afterForkInChild()
	for i, c := range f.list {
		a := c.args
		for j, earlier := range c.uses {
			if earlier != nil {
				a[j] = uintptr(*earlier.result)
			}
		}
		result, _, errno := syscall.RawSyscall6(c.number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno == 0 && c.seen != nil && (c.seen.Dev != c.judged.Dev || c.seen.Ino != c.judged.Ino) {
			errno = syscall.ESTALE
		}
		if errno != c.want && (c.want != 0 || errno != c.ignored && c.ignored != anyError) {
			failed.call, failed.errno = uintptr(i), errno
			break
		}
		if errno == 0 {
			*c.result = int32(result)
		}
	}
	if failed.errno == 0 {
		failed.errno = syscall.ECANCELED // the call succeeded, and should have failed
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(f.report), uintptr(unsafe.Pointer(&failed)), unsafe.Sizeof(failed))
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, FailureStatus, 0, 0)
	}
}
