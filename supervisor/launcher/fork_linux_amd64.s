#include "textflag.h"

// func vfork(flags uintptr, child *int32) (pid, errno uintptr)
//
// The child goes on first, on the stack that the parent goes on with when the
// child has been replaced: what is below the caller's frame is not the same then.
// So the way back is kept in a register, which each of the two has of its own.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-32
	MOVQ flags+0(FP), DI
	XORL SI, SI
	MOVQ child+8(FP), DX // CLONE_PARENT_SETTID
	XORL R10, R10
	XORL R8, R8
	MOVQ $56, AX // clone
	POPQ R12
	SYSCALL
	PUSHQ R12
	CMPQ AX, $-4095
	JCC  failed
	MOVQ AX, pid+16(FP)
	MOVQ $0, errno+24(FP)
	RET

failed:
	NEGQ AX
	MOVQ $0, pid+16(FP)
	MOVQ AX, errno+24(FP)
	RET
