// Package hostile attacks the sandbox: it holds no code but tests, whose tables
// are programs that try to reach what the operator did not grant.
//
// What flows through it: each row of a table is a program. It runs twice on the
// real engines: bounded, as the operator's grants say and behind the second
// wall, where nothing of what it goes for may show anywhere; and as a control,
// without the boundary, where it must succeed. A row whose control does not show
// what the attack goes for counts as a failure, so that a wrong spelling is
// never taken for a boundary that holds.
package hostile
