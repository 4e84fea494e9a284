//go:build !windows

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/cmd/rillbox/terminal"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// maxNotebook is how large a notebook's file may be, in bytes: it may hold pictures.
const maxNotebook = 64 << 20

// notebook is a Jupyter notebook of format 4 (nbformat.readthedocs.io), as it is read;
// what we don't know is kept as it is.
type notebook struct {
	all   map[string]any
	cells []map[string]any // those of code
}

// readNotebook reads a notebook, and says in which language its kernel is.
func readNotebook(source io.Reader) (n *notebook, language string, err error) {
	text, err := io.ReadAll(io.LimitReader(source, maxNotebook+1))
	if err != nil {
		return nil, "", err
	}
	if len(text) > maxNotebook {
		return nil, "", fmt.Errorf("it has more than %s", formatSize(maxNotebook))
	}
	n = &notebook{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&n.all); err != nil {
		return nil, "", notNotebook(text, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, "", errors.New("it is not a notebook: something follows its JSON object")
	}
	version, isNotebook := n.all["nbformat"]
	if !isNotebook {
		return nil, "", errors.New(`it is not a notebook: its JSON object has no "nbformat"`)
	}
	cells, ok := n.all["cells"].([]any)
	if !ok || fmt.Sprint(version) != "4" {
		return nil, "", errors.New("it is not a notebook of format 4: save it in that format (jupyter nbconvert --to notebook)")
	}
	for i, one := range cells {
		cell, ok := one.(map[string]any)
		if !ok {
			return nil, "", fmt.Errorf("its cell %d is not a cell", i+1)
		}
		if cell["cell_type"] != "code" {
			continue
		}
		if _, ok := sourceOf(cell); !ok {
			return nil, "", fmt.Errorf(`its cell %d has no code: "source" must be a text or a list of lines`, i+1)
		}
		n.cells = append(n.cells, cell)
	}
	metadata, _ := n.all["metadata"].(map[string]any)
	for _, path := range [][2]string{{"kernelspec", "language"}, {"language_info", "name"}, {"kernelspec", "name"}} {
		info, _ := metadata[path[0]].(map[string]any)
		if name, ok := info[path[1]].(string); ok && language == "" {
			language = name
		}
	}
	return n, language, nil
}

// notNotebook says why a file is no JSON object, and in which line.
func notNotebook(text []byte, err error) error {
	at := int64(len(text))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = syntax.Offset
	} else if !errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is not a notebook, which is a JSON object")
	}
	return fmt.Errorf("it is not a notebook, which is a JSON object: line %d: %w", 1+bytes.Count(text[:at], []byte("\n")), err)
}

// sourceOf is a cell's code, which is kept as a text or as its lines; false if it is
// neither.
func sourceOf(cell map[string]any) (code string, ok bool) {
	lines, isList := cell["source"].([]any)
	if !isList {
		code, ok = cell["source"].(string)
		return code, ok
	}
	var all strings.Builder
	for _, line := range lines {
		text, ok := line.(string)
		if !ok {
			return "", false
		}
		all.WriteString(text)
	}
	return all.String(), true
}

// code is that of all cells, for a look at what they may import.
func (n *notebook) code() string {
	var all []string
	for _, cell := range n.cells {
		code, _ := sourceOf(cell) // as it was read
		all = append(all, code)
	}
	return strings.Join(all, "\n")
}

// mayFail says that a cell is marked as one that raises an error.
func mayFail(cell map[string]any) bool {
	metadata, _ := cell["metadata"].(map[string]any)
	tags, _ := metadata["tags"].([]any)
	return slices.Contains(tags, any("raises-exception"))
}

// put writes down what came of a cell, the number-th that ran.
func put(cell map[string]any, number int, r job.Result) {
	outputs := []any{}
	for name, stream := range map[string]job.Captured{"stdout": r.Stdout, "stderr": r.Stderr} {
		if text := stream.String(); text != "" {
			outputs = append(outputs, map[string]any{"output_type": "stream", "name": name, "text": lines(text)})
		}
	}
	slices.SortFunc(outputs, func(a, b any) int { // stdout first
		return strings.Compare(b.(map[string]any)["name"].(string), a.(map[string]any)["name"].(string))
	})
	for i, display := range r.Displays {
		data := map[string]any{}
		for kind, content := range display {
			if strings.HasPrefix(kind, "text/") || kind == "image/svg+xml" {
				data[kind] = lines(content)
			} else if data[kind] = any(content); strings.HasSuffix(kind, "json") && json.Valid([]byte(content)) {
				data[kind] = json.RawMessage(content)
			}
		}
		output := map[string]any{"output_type": "display_data", "data": data, "metadata": map[string]any{}}
		if i == len(r.Displays)-1 && r.Value != nil {
			output["output_type"], output["execution_count"] = "execute_result", number
		}
		outputs = append(outputs, output)
	}
	if e := r.Error; e != nil {
		traceback := strings.Split(strings.TrimRight(e.Traceback, "\n"), "\n")
		outputs = append(outputs, map[string]any{"output_type": "error", "ename": e.Name, "evalue": e.Message, "traceback": traceback})
	}
	cell["outputs"], cell["execution_count"] = outputs, number
}

// lines are a text as a notebook keeps it, each line with its end.
func lines(text string) []string {
	all := strings.SplitAfter(strings.ToValidUTF8(text, "\uFFFD"), "\n")
	return slices.DeleteFunc(all, func(line string) bool { return line == "" })
}

// write writes the notebook as Jupyter does: keys in order, one blank for each level.
func (n *notebook) write(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(n.all)
}

// runNotebook runs the cells of a notebook in a session, up to one that fails, and writes
// the notebook with what came of them, if that is asked for.
func (a *app) runNotebook(ctx context.Context, e *engines, out *terminal.Output, n named, f *runFlags) error {
	info, err := e.CreateSession(ctx, supervisor.SessionRequest{Language: n.Language, Packages: n.Packages}, out.Emit)
	if err != nil {
		return err
	}
	if len(n.Files) > 0 {
		files, err := e.Workspace(ctx, "", info.ID)
		if err == nil {
			err = files.WriteAll(n.Files)
		}
		if err != nil {
			return fmt.Errorf("cannot place the notebook's modules: %w", err)
		}
	}
	pictures := &terminal.Gallery{Dir: filepath.Dir(n.file), Name: strings.TrimSuffix(filepath.Base(n.file), ".ipynb"), Session: true}
	var status error
	for i, cell := range n.notebook.cells {
		code, _ := sourceOf(cell)
		if strings.TrimSpace(code) == "" {
			continue
		}
		if err := checkProgram(code, a.config.Limits.Code); err != nil {
			return usageError{fmt.Errorf("cell %d: %w", i+1, err)}
		}
		cellProgram := job.Program{Language: n.Language, Code: code, Name: fmt.Sprintf("cell-%d%s", i+1, n.language.Extensions[0]), Echo: true, Manifest: n.Manifest}
		result, err := e.Run(ctx, cellProgram, supervisor.Call{Session: info.ID, Streams: job.Streams{Emit: out.Emit}})
		out.End()
		switch {
		case out.Failed != nil:
			return out.Failed
		case ctx.Err() != nil:
			return exitStatus(statusCancelled)
		case err != nil:
			return err
		}
		put(cell, i+1, result)
		if !f.json {
			out.Display(pictures, result.Displays)
			out.Report(result)
			out.EndLine(os.Stdout)
		}
		if status = statusOf(result); status != nil && !mayFail(cell) {
			break
		}
		status = nil
	}
	if f.out != "" {
		if err := replaceFile(f.out, n.notebook.write); err != nil {
			return err
		}
	}
	if f.json {
		if err := n.notebook.write(jsonOutput()); err != nil {
			return fmt.Errorf("cannot write the notebook: %w", err)
		}
	}
	return status
}
