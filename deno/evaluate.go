//go:build !windows

package deno

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"rillbox/deno/modules"
	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// remote is a value in the child as V8 describes it: the value itself where JSON can
// carry it, else a name for it.
type remote struct {
	Type           string          `json:"type"`
	Subtype        string          `json:"subtype"`
	ClassName      string          `json:"className"`
	Value          json.RawMessage `json:"value"`
	Unserializable string          `json:"unserializableValue"` // "NaN", "1n"
	Description    string          `json:"description"`
	ObjectID       string          `json:"objectId"`
}

// argument is the value as an argument of a call.
func (r remote) argument() any {
	switch {
	case r.ObjectID != "":
		return map[string]string{"objectId": r.ObjectID}
	case r.Unserializable != "":
		return map[string]string{"unserializableValue": r.Unserializable}
	case len(r.Value) > 0:
		return map[string]json.RawMessage{"value": r.Value}
	}
	return map[string]string{}
}

// evaluated is the outcome of an evaluation.
type evaluated struct {
	Result    remote `json:"result"`
	Exception *struct {
		Text       string          `json:"text"`
		Line       int             `json:"lineNumber"`
		Column     int             `json:"columnNumber"`
		Exception  remote          `json:"exception"`
		StackTrace json.RawMessage `json:"stackTrace"`
	} `json:"exceptionDetails"`
}

// cellGroup is the object group in which V8 keeps the values that a cell's results name.
const cellGroup = "cell"

// cellPrelude is the line before a cell's code. It makes the code strict, as modules
// are. After the await, the code runs when V8 has returned from the call, so that it
// can be interrupted, and V8 holds its promise.
const cellPrelude = "'use strict';await void 0;$begin();"

// notBegunCode is the exit status of a process that ended before its cell began; see
// NOT_BEGUN in session.ts. A guest that ends with it says no more than that.
const notBegunCode = 254

// prepared is session.ts's Prepared.
type prepared struct {
	Code       string          `json:"code"`
	Expression bool            `json:"expression"`
	Transpile  bool            `json:"transpile"`
	Error      *job.GuestError `json:"error"`
}

// evaluate evaluates the cell. The error means that the process does not answer,
// or that ctx has ended.
func (c *sessionCell) evaluate(ctx context.Context) (wire.Outcome, error) {
	over, err := c.stdin.give(c.input)
	if err != nil {
		return wire.Outcome{}, err
	}
	defer over()
	p, err := c.prepare(ctx)
	if err == nil && p.Transpile { // leaving its types out is not enough
		scan, ended := c.engine.scanners.Of(ctx)
		defer ended()
		found, err := scan(modules.ScanRequest{Code: c.code, Extensions: []string{c.extension}, Cell: true, Transpile: true, JSX: c.jsx})
		if err != nil {
			return wire.Outcome{}, err
		}
		if c.script = found.Script; c.script.Problem != "" {
			return c.syntaxError(), nil
		}
		if p, err = c.prepare(ctx); err != nil {
			return wire.Outcome{}, err
		}
	}
	if err != nil || p.Error != nil {
		return wire.Outcome{Result: &wire.Frame{Error: p.Error}}, err
	}
	if len(c.loads) > 0 || c.named {
		loads := map[string]any{"packages": append([]string{}, c.loads...), "named": c.named}
		if err := c.askGuest(ctx, "load", map[string]any{"value": loads}, nil); err != nil && !isRefused(err) {
			return wire.Outcome{}, err // what could not be loaded, its import tells of
		}
	}
	script := cellPrelude + "\n" + p.Code
	if p.Expression {
		script = cellPrelude + "(\n" + p.Code + "\n)"
	}
	c.began = true
	var e evaluated
	err = c.inspector.call(ctx, "Runtime.evaluate", map[string]any{
		"expression":   script + "\n//# sourceURL=" + c.name,
		"replMode":     true,
		"awaitPromise": true,
		"objectGroup":  cellGroup,
	}, &e)
	large := (*largeError)(nil)
	switch {
	case errors.As(err, &large) && strings.Contains(large.head, `"subtype":"error"`):
		return failed("Error", "the error that was thrown is too large to show", ""), nil
	case errors.As(err, &large):
		return c.note("the cell's value is too large, and is left out"), nil
	case isRefused(err) && strings.Contains(err.Error(), "Promise was collected"):
		message := "Top-level await promise never resolved"
		return failed("Error", message, "Error: "+message+"\n    at "+c.name), nil
	case err != nil:
		return wire.Outcome{}, err
	case e.isUncompiled():
		return c.uncompiled(e), nil
	case e.Exception != nil:
		return c.thrown(ctx, e)
	}
	return c.value(ctx, e.Result)
}

// pipelined is the size, in bytes, up to which a message is sent before the answers to
// those before it have come. Deno loses a message of several packets if it has one to
// send while it reads it.
const pipelined = 3 << 10

// prepare has the child prepare for the cell, and returns the code to evaluate. Its
// answer is waited for: what an earlier cell left may end the process before.
func (c *sessionCell) prepare(ctx context.Context) (p prepared, err error) {
	// V8 keeps what the cell before printed and returned until it is told.
	c.inspector.send("Runtime.releaseObjectGroup", map[string]any{"objectGroup": cellGroup})
	discarded := c.inspector.send("Runtime.discardConsoleEntries", nil)
	limits := c.engine.options.Limits
	request, err := json.Marshal(map[string]any{
		"name": c.name, "code": c.script.Code, "map": c.script.Map, "typescript": c.typescript,
		"imports": c.packages.imports, "scopes": c.packages.scopes, "args": append([]string{}, c.program.Args...),
		"limit": limits.Result, "displays": limits.Displays, "echo": c.program.Echo,
	})
	if err == nil && len(request) > pipelined {
		err = discarded(ctx, nil)
	}
	if err != nil {
		return p, err
	}
	err = c.send("prepare", map[string]json.RawMessage{"value": request}, false)(ctx, &p)
	return p, err
}

// isUncompiled reports whether V8 could not compile the code, and so ran nothing of it.
func (e evaluated) isUncompiled() bool {
	return e.Exception != nil && e.Exception.Exception.ClassName == "SyntaxError" && len(e.Exception.StackTrace) == 0
}

func isRefused(err error) bool {
	refused := (*refusedError)(nil)
	return errors.As(err, &refused)
}

func failed(name, message, traceback string) wire.Outcome {
	return wire.Outcome{Result: &wire.Frame{Error: &job.GuestError{Name: name, Message: message, Traceback: traceback}}}
}

// note is the outcome of a cell that completed, and a note on why it has no value.
func (c *sessionCell) note(text string) wire.Outcome {
	c.packages.notes = append(c.packages.notes, text)
	return wire.Outcome{Result: &wire.Frame{}}
}

// value is the outcome of a cell with that value.
func (c *sessionCell) value(ctx context.Context, r remote) (wire.Outcome, error) {
	c.mu.Lock()
	showed := len(c.shown.List) > 0 || c.shown.TooMuch > 0
	c.mu.Unlock()
	if !showed && !c.program.Echo { // then a simple value is all that there is
		switch {
		case r.Type == "undefined":
			return wire.Outcome{Result: &wire.Frame{}}, nil
		case r.Subtype == "null", r.Type == "boolean", r.Type == "number" && len(r.Value) > 0,
			r.Type == "string" && int64(len(r.Value)) <= c.engine.options.Limits.Result && !bytes.Contains(r.Value, []byte(`\u`)): // V8 escapes all but ASCII
			return wire.Outcome{Result: &wire.Frame{Value: r.Value}}, nil
		}
	}
	var text string
	err := c.askGuest(ctx, "value", r.argument(), &text)
	switch {
	case isRefused(err):
		return c.note("the cell's value can't be shown: " + err.Error()), nil
	case err != nil || text == "":
		return wire.Outcome{Result: &wire.Frame{}}, err
	case !json.Valid([]byte(text)) || int64(len(text)) > c.engine.options.Limits.Result:
		return c.note("the cell's value is no JSON, or too large, and is left out"), nil
	}
	return wire.Outcome{Result: &wire.Frame{Value: json.RawMessage(text)}}, nil
}

// uncompiled is the outcome of a cell whose code V8 can't compile.
func (c *sessionCell) uncompiled(e evaluated) wire.Outcome {
	if c.script.Problem != "" {
		return c.syntaxError()
	}
	x := e.Exception
	message, _, _ := strings.Cut(strings.TrimPrefix(x.Exception.Description, "SyntaxError: "), "\n    at ")
	if x.Line > 0 { // the prelude is line 0, and stands for what has no place
		line, column := x.Line, x.Column+1
		if lines := strings.Split(c.program.Code, "\n"); line > len(lines) { // behind it
			line, column = len(lines), utf8.RuneCountInString(lines[len(lines)-1])+1
		}
		message = fmt.Sprintf("%s at %s:%d:%d", message, c.name, line, column)
	}
	return failed("SyntaxError", message, "SyntaxError: "+message)
}

// syntaxError is the outcome of a cell that esbuild can't parse.
func (c *sessionCell) syntaxError() wire.Outcome {
	message := strings.Replace(c.script.Problem, " at cell:", " at "+c.name+":", 1)
	return failed("SyntaxError", message, "SyntaxError: "+message)
}

// thrown is the outcome of a cell that threw something.
func (c *sessionCell) thrown(ctx context.Context, e evaluated) (wire.Outcome, error) {
	told := new(job.GuestError)
	err := c.askGuest(ctx, "error", e.Exception.Exception.argument(), told)
	if isRefused(err) {
		return failed("Error", "the error that was thrown can't be shown", ""), nil
	}
	return wire.Outcome{Result: &wire.Frame{Error: told}}, err
}
