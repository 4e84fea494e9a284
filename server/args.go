package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// The arguments of the tools for runs.

type runArgs struct {
	Language       string   `json:"language,omitempty" jsonschema:"Absent, in a session: that of its last cell."`
	Code           string   `json:"code" jsonschema:"The whole program; in a session, one cell."`
	SessionID      string   `json:"session_id,omitempty" jsonschema:"Runs the code as a cell of this session: \"default\", a name of your choice (either is made when first named), or an id from create_session."`
	Files          fileArgs `json:"files,omitempty" jsonschema:"Files for the current directory, by name. The program may then read and write there, and what it made or changed comes back; {} gives an empty directory. A session has its own, which these are added to."`
	Packages       []string `json:"packages,omitempty" jsonschema:"Only where an import does not say enough: a version, an extra, a computed import."`
	Stdin          string   `json:"stdin,omitempty" jsonschema:"Standard input."`
	Args           []string `json:"args,omitempty"`
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty" jsonschema:"How long the program itself may run."`
	MaxOutputBytes *int64   `json:"max_output_bytes,omitempty" jsonschema:"How much of what it prints, and of its value, the answer may have."`
	Output         string   `json:"output,omitempty" jsonschema:"combined: stdout and stderr as one text, in the order written. Not in a session."`
	Permissions    []string `json:"permissions,omitempty" jsonschema:"Deno permission flags (--allow-net=example.com) that narrow what the operator granted; [] means none. Absent: all that was granted."`
}

type installArgs struct {
	Language  string   `json:"language,omitempty" jsonschema:"As in run_code."`
	SessionID string   `json:"session_id,omitempty" jsonschema:"Installs them in this session as well."`
	Packages  []string `json:"packages" jsonschema:"What to fetch, as in run_code."`
}

type cancelArgs struct {
	ExecutionID string `json:"execution_id" jsonschema:"From its first progress message."`
}

type runtimesArgs struct{}

// combined is what run_code's output can be.
const combined = "combined"

// How many strings a list may hold, and how many bytes each of them. They only
// keep out nonsense; the operator's limits bound what costs something.
const (
	maxItems     = 256
	maxItemBytes = 16 << 10
)

// minTimeout is the shortest timeout_seconds that makes sense.
const minTimeout = 100 * time.Millisecond

// program checks the arguments and makes a Program of them.
func (s *Server) program(a runArgs) (p job.Program, err error) {
	language, file, err := s.resolve(a.Language, a.SessionID != "")
	if err != nil {
		return p, err
	}
	if err := cmp.Or(checkSize("code", a.Code, s.limits.Code), checkSize("stdin", a.Stdin, s.limits.Stdin)); err != nil {
		return p, err
	}
	if i := strings.IndexByte(a.Code, 0); i >= 0 {
		return p, fmt.Errorf("code holds a NUL character (at byte %d): a program is text; write it as an escape", i)
	}
	if strings.TrimSpace(a.Code) == "" {
		return p, fmt.Errorf("code is empty: send the program to run")
	}
	if err := cmp.Or(checkList("packages", a.Packages), checkList("args", a.Args), checkList("permissions", a.Permissions)); err != nil {
		return p, err
	}
	if a.Output != "" && a.Output != combined {
		return p, fmt.Errorf("output %s is not known: use %q, or leave it out for stdout and stderr apart", quote(a.Output), combined)
	}
	if m := a.MaxOutputBytes; m != nil && (*m < minOutput || *m > s.maxOutput()) {
		return p, fmt.Errorf("max_output_bytes %d is out of range: use %d to %d, or leave it out for %d", *m, minOutput, s.maxOutput(), maxOutput)
	}
	timeout, err := timeoutOf("timeout_seconds", a.TimeoutSeconds, minTimeout, s.limits.MaxTimeout, s.limits.Timeout)
	if err != nil {
		return p, err
	}
	return job.Program{
		ID:          supervisor.NewID(),
		Language:    language,
		Name:        file,
		Code:        strings.TrimPrefix(a.Code, "\uFEFF"), // which Python takes for a mistake
		Args:        a.Args,
		Packages:    a.Packages,
		Permissions: a.Permissions,
		Combined:    a.Output == combined,
		Timeout:     timeout,
	}, nil
}

// maxOutput is the largest max_output_bytes: all that is kept of a run.
func (s *Server) maxOutput() int64 {
	return max(maxOutput, s.limits.Stdout+s.limits.Stderr+s.limits.Result)
}

// timeoutOf checks a number of seconds.
func timeoutOf(name string, seconds *float64, least, most, usual time.Duration) (time.Duration, error) {
	if seconds == nil {
		return 0, nil
	}
	t := *seconds
	if math.IsNaN(t) || t < least.Seconds() || t > most.Seconds() {
		return 0, fmt.Errorf("%s %v is out of range: use %v to %v, or leave it out for %v",
			name, t, least.Seconds(), most.Seconds(), usual.Seconds())
	}
	return time.Duration(t * float64(time.Second)), nil
}

// checkSize gives both numbers in bytes: rounded, they can look the same.
func checkSize(name, text string, most int64) error {
	if int64(len(text)) <= most {
		return nil
	}
	rounded := ""
	if most >= 1<<10 {
		rounded = " (" + size(most) + ")"
	}
	return fmt.Errorf("%s has %d bytes: the most is %d%s", name, len(text), most, rounded)
}

func checkList(name string, list []string) error {
	if len(list) > maxItems {
		return fmt.Errorf("%s has %d items: the most is %d", name, len(list), maxItems)
	}
	for i, item := range list {
		if err := checkSize(fmt.Sprintf("%s[%d]", name, i), item, maxItemBytes); err != nil {
			return err
		}
		switch {
		case strings.IndexByte(item, 0) >= 0:
			return fmt.Errorf("%s[%d] holds a NUL character, which cannot be passed on", name, i)
		case item == "" && name != "args":
			return fmt.Errorf("%s[%d] is empty: name one or leave it out", name, i)
		}
	}
	return nil
}

// decodeArgs reads a tool's arguments into T, a struct of strings, numbers,
// booleans, lists of strings and objects. Its errors are written for a model:
// they name the field, say what came and what is allowed. A null means absent.
func decodeArgs[T any](tool string, raw json.RawMessage) (T, error) {
	var args T
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if !utf8.Valid(raw) {
		return args, fmt.Errorf("the arguments of %s are not valid UTF-8", tool)
	}
	if _, n := mendSurrogates(raw); n > 0 {
		return args, fmt.Errorf(`the arguments of %s hold half of a surrogate pair (an escape such as \ud83d alone), which is no character: send whole characters`, tool)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return args, fmt.Errorf("the arguments of %s must be an object, got %s", tool, kindOf(raw))
	}
	v := reflect.ValueOf(&args).Elem()
	var names []string
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		field, given := fields[name]
		delete(fields, name)
		if !given || string(bytes.TrimSpace(field)) == "null" {
			if option == "" {
				return args, fmt.Errorf("%s needs %s", tool, name)
			}
			continue
		}
		kind, hint := wanted(v.Type().Field(i).Type)
		if got := kindOf(field); got != kind {
			return args, fmt.Errorf("%s must be %s%s, got %s", name, kind, hint, got)
		}
		if err := json.Unmarshal(field, v.Field(i).Addr().Interface()); err != nil {
			return args, fmt.Errorf("%s: %s is out of range", name, quote(string(field)))
		}
	}
	if unknown := slices.Sorted(maps.Keys(fields)); len(unknown) > 0 {
		if len(names) == 0 {
			return args, fmt.Errorf("%s takes no arguments, got %s", tool, quote(unknown[0]))
		}
		return args, fmt.Errorf("%s has no argument %s: it takes %s", tool, quote(unknown[0]), strings.Join(names, ", "))
	}
	return args, nil
}

// wanted is the kind of JSON value that a field of type t takes, as kindOf
// names it, and a hint where that helps.
func wanted(t reflect.Type) (kind, hint string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string", ""
	case reflect.Slice:
		return "a list", ` of strings (["one", "two"])`
	case reflect.Map:
		return "an object", ` of files by name ({"data.csv": "a,b\n1,2\n"})`
	case reflect.Bool:
		return "a boolean", ""
	default:
		return "a number", ""
	}
}

// kindOf names what a JSON value is; "a list" is one of strings only.
func kindOf(raw json.RawMessage) string {
	kind := outerKind(raw)
	var items []json.RawMessage
	if kind == "a list" && json.Unmarshal(raw, &items) == nil {
		for _, item := range items {
			if inner := outerKind(item); inner != "a string" {
				return "a list with " + inner + " in it"
			}
		}
	}
	return kind
}

// kinds are the kinds of JSON values by their first byte; others are numbers.
var kinds = map[byte]string{'{': "an object", '[': "a list", '"': "a string", 't': "a boolean", 'f': "a boolean", 'n': "null"}

func outerKind(raw json.RawMessage) string {
	return cmp.Or(kinds[bytes.TrimSpace(raw)[0]], "a number")
}

// valueOr is the value of an argument, otherwise where it is absent.
func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// quote shows a client's word back, shortened.
func quote(word string) string {
	return job.QuoteName(word, 80)
}
