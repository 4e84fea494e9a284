#include "textflag.h"

// func vfork(flags uintptr) (pid, errno uintptr)
//
// The child goes on first, on the stack that the parent goes on with when the
// child has been replaced. The way back is in a register, which each of the two
// has of its own.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-24
	MOVD flags+0(FP), R0
	MOVD ZR, R1
	MOVD ZR, R2
	MOVD ZR, R3
	MOVD ZR, R4
	MOVD $220, R8 // clone
	SVC
	CMN  $4095, R0
	BCS  failed
	MOVD R0, pid+8(FP)
	MOVD ZR, errno+16(FP)
	RET

failed:
	NEG  R0, R0
	MOVD ZR, pid+8(FP)
	MOVD R0, errno+16(FP)
	RET
