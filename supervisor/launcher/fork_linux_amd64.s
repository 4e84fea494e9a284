#include "textflag.h"

// func vfork(flags uintptr) (pid, errno uintptr)
//
// The child goes on first, on the stack that the parent goes on with when the
// child has been replaced: what is below the caller's frame is not the same then.
// So the way back is kept in a register, which each of the two has of its own.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-24
	MOVQ flags+0(FP), DI
	XORL SI, SI
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVQ $56, AX // clone
	POPQ R12
	SYSCALL
	PUSHQ R12
	CMPQ AX, $-4095
	JCC  failed
	MOVQ AX, pid+8(FP)
	MOVQ $0, errno+16(FP)
	RET

failed:
	NEGQ AX
	MOVQ $0, pid+8(FP)
	MOVQ AX, errno+16(FP)
	RET
