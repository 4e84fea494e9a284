#include "textflag.h"

// func vfork(flags uintptr, child *int32) (pid, errno uintptr)
//
// The child goes on first, on the stack that the parent goes on with when the
// child has been replaced. The way back is in a register, which each of the two
// has of its own.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-32
	MOVD flags+0(FP), R0
	MOVD ZR, R1
	MOVD child+8(FP), R2 // CLONE_PARENT_SETTID
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8 // clone
	SVC
	CMN  $4095, R0
	BCS  failed
	MOVD R0, pid+16(FP)
	MOVD ZR, errno+24(FP)
	RET

failed:
	NEG  R0, R0
	MOVD ZR, pid+16(FP)
	MOVD R0, errno+24(FP)
	RET
