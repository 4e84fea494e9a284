package stdio

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What Go's decoders say of a message that has something of another kind than it
// should.
var (
	goWords   = regexp.MustCompile(`(?s)^(.*?)(?:unmarshaling .*)?json: cannot unmarshal .* into Go (?:struct field \S+\.(\S+)|value) of type (\S+).*$`)
	goHandles = regexp.MustCompile(`^handling '([^']*)': invalid params: $`)
	goWrongID = regexp.MustCompile(`parse error: invalid ID type .*`)
)

// plainWords tells what is wrong with a message in JSON's words, not in those of Go's
// types.
func plainWords(text string) string {
	text = goWrongID.ReplaceAllString(text, "its id must be a string or a whole number")
	m := goWords.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	where, field, kind := m[1], m[2], "an object"
	switch t := m[3]; {
	case field == "jsonrpc":
		kind = `"2.0"`
	case t == "string":
		kind = "a string"
	case t == "bool":
		kind = "a boolean"
	case strings.HasPrefix(t, "[]"):
		kind = "a list"
	case strings.HasPrefix(t, "int") || strings.HasPrefix(t, "float") || strings.HasPrefix(t, "uint"):
		kind = "a number"
	}
	if method := goHandles.FindStringSubmatch(where); method != nil {
		if field == "" {
			return fmt.Sprintf("the params of %s must be %s", method[1], kind)
		}
		return fmt.Sprintf("in the params of %s, %s must be %s", method[1], field, kind)
	}
	if field == "" {
		field = "it"
		if where != "" && kind == "a string" {
			field = "its method" // the one field of a message that is read by itself
		}
	}
	return where + field + " must be " + kind
}

// inPlainWords is an answer's error with its message in plain words.
func inPlainWords(err error) error {
	var wire *jsonrpc.Error
	if err == nil || !errors.As(err, &wire) || plainWords(err.Error()) == err.Error() {
		return err
	}
	return &jsonrpc.Error{Code: wire.Code, Message: plainWords(err.Error()), Data: wire.Data}
}
