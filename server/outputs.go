package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"rillbox/supervisor/job"
)

// maxOutput is how many bytes of output, value and error an answer has, unless the call
// asks for more: a model pays for each of them.
const maxOutput = 64 << 10

// minOutput is the least max_output_bytes that makes sense.
const minOutput = 1 << 10

// fit shortens a result to most bytes. Parts that are short stay whole; what is cut is
// kept whole for the client to read as a resource.
func (s *Server) fit(r job.Result, most int, client string) job.Result {
	sizes := sizesOf(r)
	share := shareOf(most, sizes)
	var links []string
	keep := func(name, text string) {
		if uri := "rillbox://executions/" + r.ExecutionID + "/" + name; s.outputs.keep(client, uri, text) {
			links = append(links, uri)
		}
	}
	for i, stream := range []*job.Captured{&r.Stdout, &r.Stderr} {
		if sizes[i] > share {
			keep([]string{outName(r.Combined), "stderr"}[i], textOf(*stream).text)
			*stream = shortened(*stream, share)
		}
	}
	notes := slices.Clip(r.Notes)
	if sizes[2] > share {
		whole, _ := value(r.Value)
		keep("result", string(whole))
		var text string
		if json.Unmarshal(whole, &text) != nil {
			text = string(whole)
			notes = append(notes, "The program's value is too long; it is given as a string, the two ends of its JSON.")
		}
		r.Value = jsonString(textOf(shortened(job.Captured{Head: []byte(text)}, share)).text)
	}
	if r.Error != nil {
		r.Error = &job.GuestError{Name: r.Error.Name, Message: shorten(r.Error.Message, share), Traceback: shorten(r.Error.Traceback, share)}
	}
	if len(links) > 0 {
		notes = append(notes, fmt.Sprintf("What is left out can be read as %s; max_output_bytes gives more, and a file or a shorter printout costs less.", strings.Join(links, " and ")))
	}
	r.Notes = notes
	return r
}

// sizesOf are the sizes of a result's parts.
func sizesOf(r job.Result) []int {
	sizes := []int{len(r.Stdout.Head) + len(r.Stdout.Tail), len(r.Stderr.Head) + len(r.Stderr.Tail), len(r.Value)}
	if r.Error != nil {
		sizes = append(sizes, len(r.Error.Message), len(r.Error.Traceback))
	}
	return sizes
}

func totalSize(r job.Result) (sum int) {
	for _, n := range sizesOf(r) {
		sum += n
	}
	return sum
}

// textBytes is how many bytes the texts of displays have.
func textBytes(displays []job.Display) (sum int) {
	for _, display := range displays {
		for media, text := range display {
			if isText(media) {
				sum += len(text)
			}
		}
	}
	return sum
}

// shareOf divides most bytes among parts of several sizes. It is the most that one part
// may have; what smaller parts leave goes to the others.
func shareOf(most int, sizes []int) int {
	sizes = slices.Sorted(slices.Values(sizes))
	for i, n := range sizes {
		if n > most/(len(sizes)-i) {
			return most / (len(sizes) - i)
		}
		most -= n
	}
	return sizes[len(sizes)-1]
}

// shortened leaves out more of the middle, down to most bytes, which it has more than.
func shortened(c job.Captured, most int) job.Captured {
	have := len(c.Head) + len(c.Tail)
	head := c.Head
	if c.Omitted == 0 { // one text, which is cut in two here
		head = slices.Concat(c.Head, c.Tail)
		c.Tail = head
	}
	h := min(most/2, len(head))
	t := min(most-h, len(c.Tail))
	return job.Captured{Head: head[:h], Tail: c.Tail[len(c.Tail)-t:], Omitted: c.Omitted + int64(have-h-t)}
}

// maxKept is how many bytes of outputs are kept for one client; the oldest go first.
const maxKept = 16 << 20

// outputs keeps long outputs whole for the clients whose answers have them shortened.
type outputs struct {
	mu   sync.Mutex
	kept map[string][]output // by client, the oldest first
}

type output struct{ uri, text string }

// keep says whether the text is kept: one that is too large by itself is not.
func (o *outputs) keep(client, uri, text string) bool {
	if len(text) > maxKept {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	list, size := append(o.kept[client], output{uri, text}), 0
	for i := len(list) - 1; i >= 0; i-- {
		if size += len(list[i].text); size > maxKept {
			list = slices.Clone(list[i+1:])
			break
		}
	}
	o.kept[client] = list
	return true
}

func (o *outputs) read(client, uri string) (text string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.kept[client] {
		if k.uri == uri {
			return k.text, true
		}
	}
	return "", false
}

func (o *outputs) forget(client string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.kept, client)
}

const outputsTemplate = "rillbox://executions/{execution_id}/{output}"
