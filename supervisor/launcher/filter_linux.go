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
	watched    bool // we are asked about calls that it does not allow, and refuse them
}

// answer is a filter's verdict on a system call.
type answer uint32

const (
	allowed = answer(unix.SECCOMP_RET_ALLOW)
	refused = answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	// absent is what a kernel without the call says; libraries then do without it.
	absent = answer(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
	asked  = answer(unix.SECCOMP_RET_USER_NOTIF)
)

// condition holds when one of an argument's 32-bit words, masked, is one of values.
// Where the kernel takes an int it ignores the upper word, and so must a filter.
type condition struct {
	offset uint32 // in seccomp_data, seccomp(2); the word order is that of amd64 and arm64
	mask   uint32
	values []uint32
}

// ownProcess stands for the child's own process ID until it is known (see ownIDs). No
// process has this ID.
const ownProcess = 0xfffffff1

// arg is a condition on an argument whose C type has at most 32 bits.
func arg(n uint32, values ...uint32) condition {
	return condition{16 + 8*n, ^uint32(0), values}
}

// masked compares only these bits.
func (c condition) masked(bits uint32) condition { c.mask = bits; return c }

// upper is a condition on the upper half of an argument, which is a pointer.
func upper(c condition) condition { c.offset += 4; return c }

// rule allows the system calls in names, separated by spaces, when all conditions
// hold. A call may have several rules.
type rule struct {
	names string
	when  []condition
	// refuses has the rule refuse instead, without asking us: libraries are known to
	// try these calls and to do without them.
	refuses bool
}

// assembled caches the programs of filters.
var assembled = struct {
	sync.Mutex
	by map[filter][]unix.SockFilter
}{by: map[filter][]unix.SockFilter{}}

// assemble gives a copy of the filter's program, for one child.
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

// ownIDs are the words of a program into which the child must write its process ID.
func ownIDs(program *unix.SockFprog) (places []*uint32) {
	instructions := unsafe.Slice(program.Filter, program.Len)
	for i := range instructions {
		if in := &instructions[i]; in.Code == unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K && in.K == ownProcess {
			places = append(places, &in.K)
		}
	}
	return places
}

// program is the filter for an architecture. It refuses calls by i386's convention;
// x32's have numbers that are not in the table.
func (f filter) program(info *arch.Info) []bpf.Instruction {
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 4, Size: 4}, // the architecture
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(f.otherwise(refused))},
		bpf.LoadAbsolute{Off: 0, Size: 4}, // the number
	}, search(f.answers(info))...)
}

// otherwise is the answer to a call that no rule allows: this one, or a question to us.
func (f filter) otherwise(a answer) answer {
	if f.watched {
		return asked
	}
	return a
}

// span is a range of numbers with the same answer, from first up to the next span.
type span struct {
	first  uint32
	answer []bpf.Instruction
}

// answers covers all numbers in order. A number without a name belongs to a call that
// is newer than this program.
func (f filter) answers(info *arch.Info) (spans []span) {
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
		answer := give(f.otherwise(refused))
		switch {
		case !named:
			answer = give(f.otherwise(absent))
		case rules[name] != nil:
			answer = judge(rules[name], f.otherwise(refused))
		case slices.Contains(known, name):
			answer = give(absent)
		}
		if spans == nil || !slices.Equal(answer, spans[len(spans)-1].answer) {
			spans = append(spans, span{uint32(number), answer})
		}
	}
	return spans
}

// search is a binary search for the number's span.
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

// judge follows the first rule whose conditions all hold.
func judge(rules []rule, otherwise answer) (out []bpf.Instruction) {
	if slices.ContainsFunc(rules, func(r rule) bool { return len(r.when) == 0 }) {
		return give(allowed)
	}
	for _, r := range rules {
		rest := give(allowed)
		if r.refuses {
			rest = give(refused)
		}
		for _, c := range slices.Backward(r.when) {
			rest = append(c.test(len(rest)), rest...)
		}
		out = append(out, rest...)
	}
	return append(out, give(otherwise)...)
}

// test skips so many instructions unless the condition holds.
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
