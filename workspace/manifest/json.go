package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// object is a JSON object whose fields are read one by one.
type object struct {
	at     string // its path from the project
	file   string // what people are told that it is
	fields map[string]json.RawMessage
}

// maxBrackets is how many brackets a manifest may have: its parser goes down once for
// each that is open.
const maxBrackets = 100_000

// object reads a file with a JSON object, which may have comments and commas at the end
// of lists; no fields where there is no such file.
func (r *reader) object(name string) (object, error) {
	o := object{at: name, file: r.called(name)}
	text, err := r.file(name, maxFile)
	if err != nil || text == nil {
		return o, err
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	switch {
	case !utf8.Valid(text):
		return o, fmt.Errorf("%s is not UTF-8 text", o.file)
	case bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > maxBrackets:
		return o, fmt.Errorf("%s has more than %d brackets, which is all that is read", o.file, maxBrackets)
	}
	if text, err = hujson.Standardize(text); err != nil {
		return o, fmt.Errorf("%s is not JSON: %s", o.file, strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if err := json.Unmarshal(text, &o.fields); err != nil || o.fields == nil {
		return o, fmt.Errorf("%s is no JSON object", o.file)
	}
	return o, nil
}

// get reads a field, if it is there, into something of a kind that people know by a word.
func (o object) get(field string, into any, kind string) error {
	text, there := o.fields[field]
	if !there || string(text) == "null" {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %q is not %s", o.file, field, kind)
	}
	return nil
}

// texts reads an object of strings.
func (o object) texts(field string) (texts map[string]string, err error) {
	return texts, o.get(field, &texts, "an object of strings")
}

var errNoText = errors.New("it is no string")

// textOf reads a JSON string.
func textOf(raw json.RawMessage) (text string, err error) {
	if err = json.Unmarshal(raw, &text); err != nil || len(raw) == 0 || raw[0] != '"' {
		return "", errNoText
	}
	return text, nil
}
