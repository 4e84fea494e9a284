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

// filter says which system calls a child may make: those that Deno needs, and
// those that the grants of its run add.
type filter struct {
	processes  bool // it may start processes
	network    bool // it is in the machine's network
	interfaces bool // it may list the machine's network interfaces
	ownRoot    bool // no path and no process ID leads to what is not the child's
	watched    bool // refused calls are reported to us, who refuse them then
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
	offset uint32 // in seccomp_data, seccomp(2); the word order is that of amd64 and arm64
	mask   uint32
	values []uint32
}

// ownProcess stands in a condition for the process's own ID, which is not known
// before there is one (see ownIDs). It is no process's.
const ownProcess = 0xfffffff1

// arg is a condition on an argument of a C type of at most 32 bits: a value or more.
func arg(n uint32, values ...uint32) condition {
	return condition{16 + 8*n, ^uint32(0), values}
}

// of leaves only these bits to be compared.
func (c condition) of(bits uint32) condition { c.mask = bits; return c }

// upper is a condition on the upper half of an argument, which is a pointer.
func upper(c condition) condition { c.offset += 4; return c }

// rule allows system calls, by names with spaces between, when all conditions hold.
// A call may be in more than one.
type rule struct {
	names string
	when  []condition
	// knownRefused: it refuses instead, what is known to be tried in vain.
	knownRefused bool
}

// assembled holds the programs of filters that have been used.
var assembled = struct {
	sync.Mutex
	by map[filter][]unix.SockFilter
}{by: map[filter][]unix.SockFilter{}}

// assemble gives the filter's program, for one child alone.
func (f filter) assemble() (*unix.SockFprog, error) {
	assembled.Lock()
	defer assembled.Unlock()
	if assembled.by[f] == nil {
		info, err := arch.GetInfo("")
		if err != nil {
			return nil, fmt.Errorf("assemble the system call filter: %w", err)
		}
		raw, err := bpf.Assemble(f.program(info))
		if err != nil {
			return nil, fmt.Errorf("assemble the system call filter: %w", err)
		}
		for _, r := range raw {
			assembled.by[f] = append(assembled.by[f], unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K})
		}
	}
	own := slices.Clone(assembled.by[f])
	return &unix.SockFprog{Len: uint16(len(own)), Filter: &own[0]}, nil
}

// ownIDs are the places of the filter in which the process's own ID must be
// written before it is loaded; without that, the filter refuses more.
func ownIDs(program *unix.SockFprog) (places []*uint32) {
	instructions := unsafe.Slice(program.Filter, program.Len)
	for i := range instructions {
		if in := &instructions[i]; in.Code == unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K && in.K == ownProcess {
			places = append(places, &in.K)
		}
	}
	return places
}

// program is the filter for an architecture: calls by another convention than
// its own are refused (i386's), or have no number here (x32's).
func (f filter) program(info *arch.Info) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4}, // the architecture
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(f.unless(refused))},
		bpf.LoadAbsolute{Off: 0, Size: 4}, // the number
	}, search(f.calls(info))...)
}

// unless is the answer to a call that no rule allows: it is told to us first where
// that is wanted.
func (f filter) unless(a answer) answer {
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
func (f filter) calls(info *arch.Info) (spans []span) {
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
