package stdio

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What Go's decoders say of a message that has a value of a wrong kind.
var (
	decodeError   = regexp.MustCompile(`(?s)^(.*?)(?:unmarshaling .*)?json: cannot unmarshal .* into Go (?:struct field \S+\.(\S+)|value) of type (\S+).*$`)
	invalidParams = regexp.MustCompile(`^handling '([^']*)': invalid params: $`)
	invalidID     = regexp.MustCompile(`parse error: invalid ID type .*`)
)

// explain puts the error of one of Go's decoders in terms of JSON, without Go's types.
func explain(text string) string {
	text = invalidID.ReplaceAllString(text, "its id must be a string or a whole number")
	m := decodeError.FindStringSubmatch(text)
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
	if method := invalidParams.FindStringSubmatch(where); method != nil {
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

// explained is an answer's error with its message explained.
func explained(err error) error {
	var wire *jsonrpc.Error
	if err == nil || !errors.As(err, &wire) || explain(err.Error()) == err.Error() {
		return err
	}
	return &jsonrpc.Error{Code: wire.Code, Message: explain(err.Error()), Data: wire.Data}
}
