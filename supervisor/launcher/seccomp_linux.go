package launcher

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Filter says which system calls a child is left: what Deno needs, and what the
// grants of its run add.
type Filter struct {
	// Processes: the operator granted programs or native libraries.
	Processes bool
	// Network: a network beyond loopback is granted, so the child is in the
	// host's network namespace.
	Network bool
	// OwnRoot: the child has a root and process IDs of its own, so that no path
	// and no process ID leads to what is not the child's.
	OwnRoot bool
	// Interfaces: the names and addresses of the machine's network interfaces are
	// granted.
	Interfaces bool

	// watched has the calls that are refused told to us, who refuse them then.
	watched bool
}

// answer is what a filter gives for a system call.
type answer uint32

const (
	allowed = answer(unix.SECCOMP_RET_ALLOW)
	refused = answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	// absent is the answer of a kernel that has no such call, for which
	// libraries are prepared.
	absent = answer(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
	asked  = answer(unix.SECCOMP_RET_USER_NOTIF)
)

// condition holds when one of an argument's 32-bit words is, after mask, one of
// values. The kernel takes an int, and looks at the low word alone, so what a
// filter says of the other would be said of another call than the kernel makes.
type condition struct {
	offset uint32 // in seccomp_data, seccomp(2)
	mask   uint32
	values []uint32
}

// Parts of seccomp_data. The word order is that of amd64 and arm64.
const (
	numberOffset       = 0
	architectureOffset = 4
	argumentsOffset    = 16
)

// ownProcess stands in a condition for the process's own ID, which is not known
// before there is one (see ownIDs). It is no process's.
const ownProcess = 0xfffffff1

// arg is a condition on an argument of a C type of at most 32 bits: a value or more.
func arg(n uint32, values ...uint32) condition {
	return condition{argumentsOffset + 8*n, ^uint32(0), values}
}

// of leaves only these bits to be compared.
func (c condition) of(bits uint32) condition { c.mask = bits; return c }

// null is a condition on a pointer.
func null(n uint32) []condition {
	low := arg(n, 0)
	high := low
	high.offset += 4
	return []condition{low, high}
}

// rule allows system calls, by names with spaces between, when all conditions hold.
// A call may be in more than one.
type rule struct {
	names string
	when  []condition
	// knownRefused: it refuses instead, what is known to be tried in vain.
	knownRefused bool
}

// systemCallFilter gives a child's filter, for it alone.
func systemCallFilter(f Filter) (unix.SockFprog, error) {
	filter, err := assembled(f)
	if err != nil {
		return unix.SockFprog{}, fmt.Errorf("assemble the system call filter: %w", err)
	}
	filter = slices.Clone(filter)
	return unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}, nil
}

// ownIDs are the places of the filter in which the process's own ID must be
// written before it is loaded; without that, the filter refuses more.
func ownIDs(filter unix.SockFprog) (places []*uint32) {
	instructions := unsafe.Slice(filter.Filter, filter.Len)
	for i := range instructions {
		if in := &instructions[i]; in.Code == unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K && in.K == ownProcess {
			places = append(places, &in.K)
		}
	}
	return places
}

var (
	assembledMu sync.Mutex
	assembledBy = map[Filter][]unix.SockFilter{}
)

func assembled(f Filter) ([]unix.SockFilter, error) {
	assembledMu.Lock()
	defer assembledMu.Unlock()
	if filter, ok := assembledBy[f]; ok {
		return filter, nil
	}
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(f.program(info))
	if err != nil {
		return nil, err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	assembledBy[f] = filter
	return filter, nil
}

// program is the filter for an architecture: calls by another convention than
// its own are refused (i386's), or have no number here (x32's).
func (f Filter) program(info *arch.Info) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: architectureOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(f.unless(refused))},
		bpf.LoadAbsolute{Off: numberOffset, Size: 4},
	}, search(f.calls(info))...)
}

// unless is the answer to a call that no rule allows: it is told to us first where
// that is wanted.
func (f Filter) unless(a answer) answer {
	if f.watched {
		return asked
	}
	return a
}

// span is a row of system calls with the same answer: all numbers from first to
// before the next span's.
type span struct {
	first  uint32
	answer []bpf.Instruction
}

// calls are the answers to all numbers, in their order. A number without a name is
// of a call that is newer than this program.
func (f Filter) calls(info *arch.Info) (spans []span) {
	rules := map[string][]rule{}
	for _, r := range f.rules() {
		for name := range strings.FieldsSeq(r.names) {
			rules[name] = append(rules[name], r)
		}
	}
	known := strings.Fields(f.absent())
	last := slices.Max(slices.Collect(maps.Keys(info.SyscallNumbers)))
	for number := range last + 2 {
		name, named := info.SyscallNumbers[number]
		answer := give(f.unless(refused))
		switch {
		case !named:
			answer = give(f.unless(absent))
		case rules[name] != nil:
			answer = judge(rules[name], f.unless(refused))
		case slices.Contains(known, name):
			answer = give(absent)
		}
		if spans == nil || !slices.Equal(answer, spans[len(spans)-1].answer) {
			spans = append(spans, span{uint32(number), answer})
		}
	}
	return spans
}

// search finds the number's span by halves.
func search(spans []span) []bpf.Instruction {
	if len(spans) == 1 {
		return spans[0].answer
	}
	middle := len(spans) / 2
	below, above := search(spans[:middle]), search(spans[middle:])
	return slices.Concat([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: spans[middle].first, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(below))}, // a conditional jump has 8 bits only
	}, below, above)
}

func give(a answer) []bpf.Instruction { return []bpf.Instruction{bpf.RetConstant{Val: uint32(a)}} }

// judge gives what the first rule says whose conditions all hold.
func judge(rules []rule, otherwise answer) (out []bpf.Instruction) {
	if slices.ContainsFunc(rules, func(r rule) bool { return len(r.when) == 0 }) {
		return give(allowed)
	}
	for _, r := range rules {
		rest := give(allowed)
		if r.knownRefused {
			rest = give(refused)
		}
		for _, c := range slices.Backward(r.when) {
			rest = append(c.test(len(rest)), rest...)
		}
		out = append(out, rest...)
	}
	return append(out, give(otherwise)...)
}

// test goes on to the next instruction when the condition holds, and else skips
// as many.
func (c condition) test(skip int) []bpf.Instruction {
	out := []bpf.Instruction{bpf.LoadAbsolute{Off: c.offset, Size: 4}}
	if c.mask != ^uint32(0) {
		out = append(out, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask})
	}
	for i, value := range c.values {
		left := len(c.values) - 1 - i
		jump := bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: uint8(left)}
		if left == 0 {
			jump.SkipFalse = uint8(skip)
		}
		out = append(out, jump)
	}
	return out
}
