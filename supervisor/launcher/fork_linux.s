#include "textflag.h"

// func rawVforkSyscall(trap, a1, a2, a3 uintptr) (r1 uintptr, err syscall.Errno)
//
// A jump, not go:linkname: a call through linkname has a stack frame of its own, which
// the child overwrites before the parent returns through it.
TEXT ·rawVforkSyscall(SB),NOSPLIT|NOFRAME,$0-48
	JMP	syscall·rawVforkSyscall(SB)
