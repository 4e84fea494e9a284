//go:build !windows

package hostile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// asked is a call of a client's and what came of it. The number of a call is its place
// among all that its client sent.
type asked struct {
	client, number int
	tool           string
	session        string // handle; empty for a program of its own
	nonce          string // what it prints or writes
	cancelled      bool   // the client took it back
	sent           int    // when, in events that the client saw
	answers        []told
}

// told is an answer to a call.
type told struct {
	at      int    // when, as asked.sent
	text    string // all of it
	refused bool   // nothing was done: a session or the server is busy, an error of the call
	status  string // of what ran
	ran     []int  // what a cell printed: the numbers of the cells of its state, its own last
	lost    bool   // it says that the state is lost with it
	anew    bool   // it says that the state was lost before, and it began in an empty one
}

// history is what several clients of one server saw. strays are messages that answer
// nothing, or come after the answer.
type history struct {
	calls  []asked
	strays []string
}

// nonceOf is how nonces are found in answers.
var nonceOf = regexp.MustCompile(`nonce[a-z0-9]{26}`)

// check lists all that is wrong with a history: each call is answered once, with its
// own answer; cells run in the order in which they were sent, once at most; state that
// is lost is told about, and what is told is so.
func (h history) check() (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, stray := range h.strays {
		say("answers nothing: %.300s", stray)
	}
	sessions := map[string][]asked{}
	for _, c := range h.calls {
		if n := len(c.answers); n > 1 || n == 0 && !c.cancelled {
			say("%v has %d answers", c, n)
		}
		if c.session != "" {
			sessions[c.session] = append(sessions[c.session], c)
		}
		for _, a := range c.answers {
			own := map[string]bool{c.nonce: true}
			if c.tool == "read_file" {
				own = h.readable(c, a)
			}
			found := nonceOf.FindAllString(a.text, -1)
			for _, nonce := range found {
				if !own[nonce] {
					say("%v has another's answer: %s in %.300s", c, nonce, a.text)
				}
			}
			if len(found) == 0 && a.status == "completed" && (c.tool == "run_code" || c.tool == "read_file") {
				say("%v has an answer without its nonce: %.300s", c, a.text)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sessions)) {
		calls := sessions[id]
		slices.SortFunc(calls, func(a, b asked) int { return a.number - b.number })
		checkCells(calls, say)
	}
	return wrong
}

func (c asked) String() string {
	text := fmt.Sprintf("client %d's call %d, %s", c.client, c.number, c.tool)
	if c.session != "" {
		text += " in " + c.session
	}
	if c.cancelled {
		text += ", cancelled"
	}
	return text
}

// readable are the nonces that a read may find: those of writes that were sent before
// the answer came, but for what was written over before the read was sent.
func (h history) readable(read asked, answer told) map[string]bool {
	done := func(w asked) int { // when it was over for sure
		if len(w.answers) == 0 || w.answers[0].refused || w.answers[0].status != "completed" {
			return answer.at
		}
		return w.answers[0].at
	}
	may := map[string]bool{}
	for _, w := range h.calls {
		if w.tool != "write_file" || w.session != read.session || w.sent > answer.at {
			continue
		}
		over := slices.ContainsFunc(h.calls, func(later asked) bool {
			return later.tool == "write_file" && later.session == w.session && later.sent > done(w) && done(later) < read.sent
		})
		if !over && !(len(w.answers) > 0 && w.answers[0].refused) {
			may[w.nonce] = true
		}
	}
	return may
}

// checkCells checks the calls of one session, which are in the order in which they
// were sent.
func checkCells(calls []asked, say func(string, ...any)) {
	byNumber := map[int]asked{}
	for _, c := range calls {
		byNumber[c.number] = c
	}
	var state []int          // of the last cell that printed one
	var last asked           // that cell
	before := map[int]bool{} // what ran in states that are gone
	var gone *asked          // since then, a call that says that the state is lost
	known := false           // since then, the client came to know that it may be
	owed := false            // the client has yet to be told that a state was lost
	for i, c := range calls {
		switch {
		case c.tool == "reset_session" && !c.refused():
			known, owed = true, false
			if len(c.answers) > 0 {
				gone = &calls[i]
			}
			continue
		case c.tool != "run_code" || len(c.answers) == 0:
			continue
		}
		a := c.answers[0]
		if a.status == "cancelled" && !c.cancelled && !slices.ContainsFunc(calls[i:], func(r asked) bool { return r.tool == "reset_session" && !r.refused() }) {
			say("%v was cancelled, which nobody asked for", c)
		}
		if a.status == "completed" && a.ran == nil {
			say("%v says nothing of its state: %.300s", c, a.text)
		}
		if a.ran != nil {
			checkNumbers(c, a.ran, byNumber, say)
			same := state != nil && a.ran[0] == state[0]
			switch {
			case same && (len(a.ran) <= len(state) || !slices.Equal(a.ran[:len(state)], state)):
				say("%v has the state %v, and %v had %v", c, a.ran, last, state)
			case same && gone != nil:
				say("%v says that the state is lost, and %v goes on with it", *gone, c)
			case !same && state != nil && a.ran[0] < last.number:
				say("%v ran after %v, which was sent later", byNumber[a.ran[0]], last)
			}
			if !same {
				owed = owed || state != nil && !known
				for _, n := range state {
					before[n] = true
				}
			}
			for _, n := range a.ran {
				if before[n] {
					say("%v ran again in another state: %v", byNumber[n], a.ran)
				}
			}
			state, last, gone, known = a.ran, c, nil, false
			if owed && !c.cancelled { // nobody reads what a cancelled call answers
				if owed = false; !a.anew {
					say("%v has the state %v, and nobody was told that the one before was lost", c, a.ran)
				}
			}
		}
		if a.lost {
			gone, known = &calls[i], known || !c.cancelled
		}
	}
}

// checkNumbers checks the numbers that a cell printed.
func checkNumbers(c asked, ran []int, byNumber map[int]asked, say func(string, ...any)) {
	if ran[len(ran)-1] != c.number {
		say("%v is not the last of its state: %v", c, ran)
	}
	for j, n := range ran {
		one, known := byNumber[n]
		switch {
		case !known || one.tool != "run_code":
			say("%v has the cell %d, which is none of its session's", c, n)
		case one.refused():
			say("%v was refused, and %v has it in its state", one, c)
		case slices.Contains(ran[:j], n):
			say("%v ran twice: %v", one, ran)
		case j > 0 && n < ran[j-1]:
			say("%v ran after %v, which was sent later", one, byNumber[ran[j-1]])
		}
	}
}

// refused says that a call was answered, and came to nothing.
func (c asked) refused() bool { return len(c.answers) > 0 && c.answers[0].refused }

// TestTheCheckerOfHistoriesFindsWhatIsWrong: a good history has nothing wrong, and each
// change of it is found.
func TestTheCheckerOfHistoriesFindsWhatIsWrong(t *testing.T) {
	nonce := func(n int) string { return fmt.Sprintf("nonce%026d", n) }
	good := func() *history {
		h := &history{}
		at := 0
		add := func(tool string, cancelled bool, answers ...told) {
			n := len(h.calls)
			at++
			c := asked{client: 1, number: n, tool: tool, session: "s", nonce: nonce(n), cancelled: cancelled, sent: at}
			for _, a := range answers {
				at++
				a.at = at
				if a.text == "" && a.status == "completed" {
					a.text = "says " + nonce(n)
				}
				c.answers = append(c.answers, a)
			}
			h.calls = append(h.calls, c)
		}
		ran := func(numbers ...int) told { return told{status: "completed", ran: numbers} }
		add("create_session", false, told{})                                               // 0
		add("run_code", false, ran(1))                                                     // 1
		add("run_code", true)                                                              // 2: it ran
		add("run_code", true)                                                              // 3: it did not
		add("run_code", false, told{refused: true, text: "busy"})                          // 4
		add("run_code", false, ran(1, 2, 5))                                               // 5
		add("write_file", false, told{status: "completed", text: "wrote"})                 // 6
		add("write_file", false, told{status: "completed", text: "wrote"})                 // 7
		add("read_file", false, told{status: "completed", text: nonce(7)})                 // 8
		add("run_code", false, told{status: "failed", ran: []int{1, 2, 5, 9}, lost: true}) // 9
		add("run_code", false, ran(10))                                                    // 10
		add("run_code", false, told{status: "cancelled", lost: true, ran: []int{10, 11}})  // 11
		add("reset_session", false, told{status: "completed"})                             // 12
		add("run_code", false, ran(13))                                                    // 13
		add("run_code", false, told{status: "completed", ran: []int{14}, anew: true})      // 14
		add("run_code", true, told{status: "cancelled", ran: []int{14, 15}})               // 15
		add("run_code", false, ran(14, 15, 16))                                            // 16
		add("run_code", false, told{status: "completed", ran: []int{14, 15, 16, 17}})      // 17
		return h
	}
	if wrong := good().check(); len(wrong) > 0 {
		t.Fatalf("in a good history: %q", wrong)
	}
	answer := func(h *history, n int) *told { return &h.calls[n].answers[0] }
	for name, row := range map[string]struct {
		spoil func(h *history)
		want  string
	}{
		"no answer":            {func(h *history) { h.calls[8].answers = nil }, "call 8, read_file in s has 0 answers"},
		"two answers":          {func(h *history) { h.calls[5].answers = append(h.calls[5].answers, *answer(h, 5)) }, "call 5, run_code in s has 2 answers"},
		"a cancelled call's":   {func(h *history) { h.calls[15].answers = append(h.calls[15].answers, *answer(h, 15)) }, "cancelled has 2 answers"},
		"a stray":              {func(h *history) { h.strays = []string{"progress"} }, "answers nothing: progress"},
		"another's answer":     {func(h *history) { answer(h, 5).text = nonce(1) }, "call 5, run_code in s has another's answer"},
		"another's in one's":   {func(h *history) { answer(h, 5).text += nonce(1) }, "call 5, run_code in s has another's answer"},
		"an empty answer":      {func(h *history) { answer(h, 5).text = "nothing" }, "without its nonce"},
		"a stale read":         {func(h *history) { answer(h, 8).text = nonce(6) }, "call 8, read_file in s has another's answer"},
		"a read ahead":         {func(h *history) { h.calls[6].sent, h.calls[7].sent = 1000, 1001 }, "call 8, read_file in s has another's answer"},
		"a refused write":      {func(h *history) { answer(h, 7).refused = true }, "call 8, read_file in s has another's answer"},
		"another session's":    {func(h *history) { h.calls[7].session = "other" }, "call 8, read_file in s has another's answer"},
		"another's cell":       {func(h *history) { h.calls[2].session = "other" }, "has the cell 2, which is none of its session's"},
		"another's state":      {func(h *history) { answer(h, 5).ran = []int{1, 2} }, "is not the last of its state"},
		"sooner than sent":     {func(h *history) { answer(h, 1).ran = []int{2, 1} }, "call 1, run_code in s ran after client 1's call 2"},
		"a refused cell ran":   {func(h *history) { answer(h, 5).ran = []int{1, 2, 4, 5} }, "call 4, run_code in s was refused, and"},
		"twice":                {func(h *history) { answer(h, 5).ran = []int{1, 1, 2, 5} }, "call 1, run_code in s ran twice"},
		"not at all":           {func(h *history) { answer(h, 17).ran = []int{14, 15, 17} }, "has the state [14 15 17], and"},
		"late":                 {func(h *history) { answer(h, 17).ran = []int{14, 15, 16, 3, 17} }, "call 3, run_code in s, cancelled ran after"},
		"late in a new state":  {func(h *history) { answer(h, 13).ran = []int{3, 13} }, "call 3, run_code in s, cancelled ran after"},
		"again in a new state": {func(h *history) { answer(h, 10).ran = []int{9, 10} }, "call 9, run_code in s ran again in another state"},
		"lost in silence":      {func(h *history) { answer(h, 14).anew = false }, "call 14, run_code in s has the state [14], and nobody was told"},
		"told to nobody":       {func(h *history) { h.calls[14].cancelled = true }, "call 16, run_code in s has the state [14 15 16], and nobody was told"},
		"lost in an answer that nobody got": {func(h *history) {
			h.calls[9].answers, h.calls[9].cancelled = nil, true
		}, "call 10, run_code in s has the state [10], and nobody was told"},
		"lost in an answer that nobody reads": {func(h *history) { h.calls[9].cancelled = true }, "call 10, run_code in s has the state [10], and nobody was told"},
		"lost and yet there":                  {func(h *history) { answer(h, 16).lost = true }, "call 16, run_code in s says that the state is lost, and client 1's call 17"},
		"a reset without effect": {func(h *history) {
			answer(h, 11).lost = false
			answer(h, 13).ran = []int{10, 11, 13}
		}, "call 12, reset_session in s says that the state is lost"},
		"cancelled by nobody": {func(h *history) { h.calls[15].cancelled = false }, "was cancelled, which nobody asked for"},
		"no state":            {func(h *history) { answer(h, 17).ran = nil }, "says nothing of its state"},
	} {
		h := good()
		row.spoil(h)
		if wrong := h.check(); !strings.Contains(strings.Join(wrong, "\n"), row.want) {
			t.Errorf("%s: found %q, want %q", name, wrong, row.want)
		}
	}
}
