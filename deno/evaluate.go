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

	"rillbox/supervisor"
)

// remote is a value in the child, as V8 tells of it: itself where JSON has it,
// else by a name.
type remote struct {
	Type           string          `json:"type"`
	Subtype        string          `json:"subtype"`
	ClassName      string          `json:"className"`
	Value          json.RawMessage `json:"value"`
	Unserializable string          `json:"unserializableValue"` // "NaN", "1n"
	Description    string          `json:"description"`
	ObjectID       string          `json:"objectId"`
}

// argument names the value as an argument of a call.
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

// evaluated is what became of an evaluation.
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

// cellGroup is the name under which V8 keeps what a cell's results name.
const cellGroup = "cell"

// cellPrelude is what stands on a line before a cell's code. Strict as modules are;
// and what follows the await does not run while V8 still works on the call, when
// nothing could interrupt it, nor can its promise be collected before V8 has
// asked for it.
const cellPrelude = "'use strict';await void 0;"

// prepared is what session.ts says of a cell.
type prepared struct {
	Code       string     `json:"code"`
	Expression bool       `json:"expression"`
	Lower      bool       `json:"lower"`
	Error      *wireError `json:"error"`
}

// wireError is wire.ts's WireError.
type wireError struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
}

func (w *wireError) guest() *supervisor.GuestError {
	if w == nil {
		return nil
	}
	return &supervisor.GuestError{Name: w.Name, Message: w.Message, Traceback: w.Stack}
}

// evaluate evaluates the cell. The error means that the process does not answer,
// or that ctx has ended.
func (c *sessionCell) evaluate(ctx context.Context) (Outcome, error) {
	over, err := c.stdin.give(c.program.Stdin)
	if err != nil {
		return Outcome{}, err
	}
	defer over()
	code, wrong, err := c.script(ctx)
	if err != nil || wrong != nil {
		return Outcome{Result: &Frame{Error: wrong}}, err
	}
	if len(c.requires) > 0 {
		if err := c.askGuest(ctx, "load", map[string]any{"value": c.requires}, nil); err != nil && !isRefused(err) {
			return Outcome{}, err // what could not be loaded, require tells of
		}
	}
	c.began = true
	var e evaluated
	err = c.inspector.call(ctx, "Runtime.evaluate", map[string]any{
		"expression":   code + "\n//# sourceURL=" + c.name,
		"replMode":     true,
		"awaitPromise": true,
		"objectGroup":  cellGroup,
	}, &e)
	defer func() { // V8 would keep it all
		c.inspector.tell("Runtime.releaseObjectGroup", map[string]any{"objectGroup": cellGroup})
		c.inspector.settle(ctx, "Runtime.discardConsoleEntries", nil) // the answer to both, which come in turn
	}()
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
		return Outcome{}, err
	case e.Exception != nil:
		return c.thrown(ctx, e)
	}
	return c.value(ctx, e.Result)
}

func isRefused(err error) bool {
	refused := (*refusedError)(nil)
	return errors.As(err, &refused)
}

func failed(name, message, traceback string) Outcome {
	return Outcome{Result: &Frame{Error: &supervisor.GuestError{Name: name, Message: message, Traceback: traceback}}}
}

// note is the outcome of a cell that completed without a value, and why.
func (c *sessionCell) note(text string) Outcome {
	c.packages.notes = append(c.packages.notes, text)
	return Outcome{Result: &Frame{}}
}

// value is the outcome of a cell with that value.
func (c *sessionCell) value(ctx context.Context, r remote) (Outcome, error) {
	c.mu.Lock()
	showed := len(c.shown.list) > 0 || c.shown.tooMuch > 0
	c.mu.Unlock()
	if !showed && !c.program.Echo { // then a simple value is all that there is
		switch {
		case r.Type == "undefined":
			return Outcome{Result: &Frame{}}, nil
		case r.Subtype == "null", r.Type == "boolean", r.Type == "number" && len(r.Value) > 0,
			r.Type == "string" && int64(len(r.Value)) <= c.engine.options.Limits.Result && !bytes.Contains(r.Value, []byte(`\u`)): // V8 escapes all but ASCII
			return Outcome{Result: &Frame{Value: r.Value}}, nil
		}
	}
	var text string
	err := c.askGuest(ctx, "value", r.argument(), &text)
	switch {
	case isRefused(err):
		return c.note("the cell's value can't be shown: " + err.Error()), nil
	case err != nil || text == "":
		return Outcome{Result: &Frame{}}, err
	case !json.Valid([]byte(text)) || int64(len(text)) > c.engine.options.Limits.Result:
		return c.note("the cell's value is no JSON, or too large, and is left out"), nil
	}
	return Outcome{Result: &Frame{Value: json.RawMessage(text)}}, nil
}

// thrown is the outcome of a cell that threw something, or could not be compiled.
func (c *sessionCell) thrown(ctx context.Context, e evaluated) (Outcome, error) {
	x := e.Exception
	if x.Exception.ClassName == "SyntaxError" && len(x.StackTrace) == 0 { // V8 has read the cell, and run nothing
		message, _, _ := strings.Cut(strings.TrimPrefix(x.Exception.Description, "SyntaxError: "), "\n    at ")
		if x.Line > 0 { // the prelude is line 0, and stands for what has no place
			line, column := x.Line, x.Column+1
			if lines := strings.Split(c.program.Code, "\n"); line > len(lines) { // behind it
				line, column = len(lines), utf8.RuneCountInString(lines[len(lines)-1])+1
			}
			message = fmt.Sprintf("%s at %s:%d:%d", message, c.name, line, column)
		}
		return failed("SyntaxError", message, "SyntaxError: "+message), nil
	}
	var told wireError
	err := c.askGuest(ctx, "error", x.Exception.argument(), &told)
	if isRefused(err) {
		return failed("Error", "the error that was thrown can't be shown", ""), nil
	}
	return Outcome{Result: &Frame{Error: told.guest()}}, err
}

// script gives the cell's code as it is evaluated, or what is wrong with it.
func (c *sessionCell) script(ctx context.Context) (string, *supervisor.GuestError, error) {
	code := strings.TrimPrefix(c.program.Code, "\ufeff")
	if strings.HasPrefix(code, "#!") {
		code = "//" + code[2:]
	}
	p, wrong, err := c.prepare(ctx, code, strings.HasSuffix(c.extension, "x"))
	if err != nil || wrong != nil {
		return "", wrong, err
	}
	if mayHaveModuleSyntax(p.Code) || strings.Contains(p.Code, "@") {
		script, lower, err := c.withoutModuleSyntax(ctx, p.Code)
		if lower && !p.Lower {
			if p, wrong, err = c.prepare(ctx, code, true); err != nil || wrong != nil {
				return "", wrong, err
			}
			script, _, err = c.withoutModuleSyntax(ctx, p.Code)
		}
		if err != nil {
			return "", nil, err
		}
		p.Code = script
	}
	if p.Expression {
		return cellPrelude + "(\n" + p.Code + "\n)", nil, nil
	}
	return cellPrelude + "\n" + p.Code, nil, nil
}

// prepare has the child make ready for the code, and gives it without its types.
// Where that takes more than leaving them out, or lower is set, it is compiled.
func (c *sessionCell) prepare(ctx context.Context, code string, lower bool) (prepared, *supervisor.GuestError, error) {
	limits := c.engine.options.Limits
	request := map[string]any{
		"name": c.name, "code": code, "typescript": c.typescript,
		"imports": c.packages.imports, "args": append([]string{}, c.program.Args...),
		"limit": limits.Result, "displays": limits.Displays, "echo": c.program.Echo,
	}
	var p prepared
	if !lower {
		if err := c.ask(ctx, "prepare", map[string]any{"value": request}, &p); err != nil || !p.Lower {
			return p, p.Error.guest(), err
		}
	}
	made, err := c.engine.scanners.lower(ctx, code, c.extension, c.jsx)
	if err != nil {
		return p, nil, err
	}
	if made.Problem != "" {
		message := strings.Replace(made.Problem, "cell:", c.name+":", 1)
		return p, &supervisor.GuestError{Name: "SyntaxError", Message: message, Traceback: "SyntaxError: " + message}, nil
	}
	request["code"], request["map"] = made.Code, made.Map
	p = prepared{}
	err = c.ask(ctx, "prepare", map[string]any{"value": request}, &p)
	p.Lower = true
	return p, p.Error.guest(), err
}

// withoutModuleSyntax rewrites the code's statements of modules; see rewriteAt.
// lower says that there is a decorator, which V8 does not know.
func (c *sessionCell) withoutModuleSyntax(ctx context.Context, code string) (script string, lower bool, err error) {
	if err := c.inspector.call(ctx, "Runtime.enable", nil, nil); err != nil {
		return "", false, err
	}
	defer c.inspector.settle(ctx, "Runtime.disable", nil)
	for range maxRewrites {
		var e evaluated
		err := c.inspector.call(ctx, "Runtime.compileScript", map[string]any{
			"expression": "(async()=>{'use strict';\n" + code + "\n})", "sourceURL": "", "persistScript": false,
		}, &e)
		if err != nil {
			return "", false, err
		}
		if e.Exception == nil {
			break
		}
		at, ok := place{e.Exception.Line - 1, e.Exception.Column}.offset(code)
		if !ok {
			break
		}
		if strings.HasPrefix(code[at:], "@") {
			return code, true, nil
		}
		rewritten, ok := rewriteAt(code, at)
		if !ok {
			break // the evaluation says what is wrong
		}
		code = rewritten
	}
	return code, false, nil
}
