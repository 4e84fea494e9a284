package server

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The arguments of the tools for files.

type readArgs struct {
	Path      string `json:"path" jsonschema:"The file to read."`
	SessionID string `json:"session_id,omitempty" jsonschema:"Absent: \"default\"."`
	Offset    int64  `json:"offset,omitempty" jsonschema:"The byte to begin at."`
	Limit     *int64 `json:"limit,omitempty" jsonschema:"How many bytes at most."`
	Encoding  string `json:"encoding,omitempty" jsonschema:"Absent: as what the bytes look like."`
}

func (a readArgs) check() error {
	switch {
	case a.Offset < 0:
		return fmt.Errorf("offset is %d: it cannot be negative", a.Offset)
	case a.Limit != nil && (*a.Limit < 1 || *a.Limit > maxRead):
		return fmt.Errorf("limit is %d: use 1 to %d", *a.Limit, maxRead)
	case a.Encoding != "" && a.Encoding != "text" && a.Encoding != "base64":
		return fmt.Errorf("encoding %s is not known: use text or base64, or leave it out", quote(a.Encoding))
	}
	return nil
}

// writeArgs are the arguments of write_file. Text is an old name of Content.
type writeArgs struct {
	Path      string  `json:"path" jsonschema:"The file to write."`
	SessionID string  `json:"session_id,omitempty" jsonschema:"As in run_code. Absent: \"default\"."`
	Content   *string `json:"content,omitempty" jsonschema:"The whole content, as text."`
	Base64    *string `json:"base64,omitempty" jsonschema:"The whole content, as base64, in place of content."`
	Text      *string `json:"text,omitempty"`
}

// content is what to write.
func (a writeArgs) content() ([]byte, error) {
	text := cmp.Or(a.Content, a.Text)
	switch {
	case a.Content != nil && a.Text != nil:
		return nil, errors.New("write_file has both content and text: give content")
	case text == nil && a.Base64 == nil:
		return nil, errors.New("write_file needs content, or base64 for bytes that are no text")
	case text != nil && a.Base64 != nil:
		return nil, errors.New("write_file has both content and base64: give one")
	}
	return fileContent{text, a.Base64}.bytes("write_file")
}

type listArgs struct {
	SessionID string `json:"session_id,omitempty" jsonschema:"Absent: \"default\"."`
	Glob      string `json:"glob,omitempty" jsonschema:"* and ? within a name, ** for any folders: *.csv is at the top only, **/*.csv anywhere, data all in that folder."`
}

type deleteArgs struct {
	Path      string `json:"path" jsonschema:"What to delete."`
	SessionID string `json:"session_id,omitempty" jsonschema:"Absent: \"default\"."`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"Delete a folder that is not empty, with all that is in it."`
}

// fileContent is a file's content as a client gives it: one of the two.
type fileContent struct {
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

// bytes are the content; what names it in errors.
func (c fileContent) bytes(what string) ([]byte, error) {
	switch {
	case c.Text == nil && c.Base64 == nil:
		return nil, fmt.Errorf("%s needs the content: text, or base64 for bytes that are no text", what)
	case c.Text != nil && c.Base64 != nil:
		return nil, fmt.Errorf("%s has both text and base64: give one", what)
	case c.Text != nil:
		return []byte(*c.Text), nil
	}
	// Padding may be there or not; Go skips newlines.
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(*c.Base64, "=\r\n"))
	if err != nil {
		return nil, fmt.Errorf("the base64 of %s is not valid: %w", what, err)
	}
	return data, nil
}

// fileArgs are files that come with a run, by name: text as a JSON string, bytes
// as an object like fileContent.
type fileArgs map[string]json.RawMessage

// bytes are the files' contents.
func (a fileArgs) bytes() (map[string][]byte, error) {
	if len(a) > maxItems {
		return nil, fmt.Errorf("files has %d files: the most is %d", len(a), maxItems)
	}
	files := make(map[string][]byte, len(a))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		what := fmt.Sprintf("files[%s]", quote(name))
		var content fileContent
		var err error
		switch kind := outerKind(a[name]); kind {
		case "a string":
			err = json.Unmarshal(a[name], &content.Text)
		case "an object":
			content, err = decodeArgs[fileContent](what, a[name])
		default:
			err = fmt.Errorf(`%s must be the text as a string, or the bytes as {"base64": "…"}, got %s`, what, kind)
		}
		if err == nil {
			files[name], err = content.bytes(what)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
