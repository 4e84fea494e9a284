package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"rillbox/supervisor/job"
)

// MaxDisplays is how many things a run may show; those beyond it are left out,
// and counted.
const MaxDisplays = 100

// maxForms is how many forms one display may have; Python's objects have up to
// ten.
const maxForms = 20

// Displays gathers what a run shows.
type Displays struct {
	List    []job.Display
	notes   []string
	leftOut int // by us
	TooMuch int // by the child, as it says
}

// Add takes a display frame. What is not well-formed in it is left out, so that
// nobody above has to look whether it is.
func (d *Displays) Add(frame Frame) error {
	var said struct {
		Data    json.RawMessage `json:"data"`
		Note    string          `json:"note"`
		LeftOut int             `json:"left_out"`
	}
	if err := json.Unmarshal(frame.JSON, &said); err != nil {
		return fmt.Errorf("%w: read a display: %w", ErrProtocol, err)
	}
	d.TooMuch = max(d.TooMuch, said.LeftOut)
	if len(said.Data) == 0 {
		return nil
	}
	if len(d.List) == MaxDisplays {
		d.leftOut++
		return nil
	}
	if said.Note != "" {
		d.note(said.Note)
	}
	display, err := d.forms(said.Data)
	if err != nil {
		return fmt.Errorf("%w: read a display: %w", ErrProtocol, err)
	}
	if len(display) > 0 {
		d.List = append(d.List, display)
	}
	return nil
}

func (d *Displays) note(text string) {
	if len(d.notes) < MaxDisplays {
		d.notes = append(d.notes, text)
	}
}

// forms reads what one display consists of.
func (d *Displays) forms(data json.RawMessage) (job.Display, error) {
	object := json.NewDecoder(bytes.NewReader(data))
	if first, err := object.Token(); err != nil || first != json.Delim('{') {
		return nil, errors.New("its data is no object")
	}
	display := job.Display{}
	for object.More() {
		name, err := object.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := object.Decode(&raw); err != nil {
			return nil, err
		}
		text := string(raw)
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, err
			}
		}
		kind, _ := name.(string)
		media, _, err := mime.ParseMediaType(kind)
		switch {
		case len(display) == maxForms:
			d.note(fmt.Sprintf("something was shown in more than %d forms; only that many are kept", maxForms))
			return display, nil
		case err != nil:
			d.note(fmt.Sprintf("%.80q is no MIME type: what was shown under that name is left out", kind))
		case isBinary(media) && !isBase64(text):
			d.note(fmt.Sprintf("what was shown as %s is not base64, and is left out", media))
		default:
			display[kind] = text
		}
	}
	return display, nil
}

// summary is the notes, with one on what was left out. When the run did not
// come to its own end, the child may have had more to tell.
func (d *Displays) summary(ended bool) []string {
	n := d.leftOut + d.TooMuch
	if n == 0 {
		return d.notes
	}
	atLeast := ""
	if !ended {
		atLeast = "at least "
	}
	what := "displays were"
	if n == 1 {
		what = "display was"
	}
	return append(d.notes, fmt.Sprintf("%s%d %s left out: show fewer or smaller ones, or write them to files", atLeast, n, what))
}

// isBinary says whether what is of a MIME type is given in base64.
func isBinary(media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	switch kind {
	case "image":
		return media != "image/svg+xml"
	case "audio", "video":
		return true
	}
	return media == "application/pdf"
}

func isBase64(text string) bool {
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	return err == nil
}
