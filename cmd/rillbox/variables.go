//go:build !windows

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"rillbox/deno"
)

// variables are environment variables for programs, NAME or NAME=value each. Values
// may be secrets: nothing that is shown has one, and no error, those of who reads
// flags included. So Set never fails; wrong says what it has met.
type variables struct {
	p     *[]string
	given bool // Set was called, so the list is no longer the default
	wrong error
}

// Set reads a list with commas. A value may have commas only in a TOML list or in
// env_file: here none can be told from the list's own.
func (v *variables) Set(text string) error {
	if !v.given {
		*v.p, v.given = []string{}, true
	}
	value := false
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if value && !strings.Contains(item, "=") {
			v.wrong = errors.New("what follows the comma after a value may be a name or a part of the value: put names first, and values with commas into env_file, or into a list in the TOML file")
			return nil
		}
		value = value || strings.Contains(item, "=")
		v.add(item)
	}
	return nil
}

func (v *variables) SetTOML(list any) error {
	items, ok := list.([]any)
	if !ok {
		v.wrong = errors.New("want a list of strings")
		return nil
	}
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			v.wrong = fmt.Errorf("want a list of strings; item %d is none", i+1)
			return nil
		}
		v.add(text)
	}
	return nil
}

func (v *variables) add(item string) {
	if err := checkVariable(item); err != nil {
		v.wrong = err
		return
	}
	*v.p = append(*v.p, item)
}

func checkVariable(item string) error {
	name, value, _ := strings.Cut(item, "=")
	if err := deno.CheckVariable(name); err != nil {
		return err
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("the value of %s has a NUL byte in it, which no program can be given", name)
	}
	return nil
}

// TOML has the names without values: those with one are left out, so that what is
// printed and read again gives no program a wrong value.
func (v *variables) TOML() any {
	names := []string{}
	for _, item := range *v.p {
		if !strings.Contains(item, "=") {
			names = append(names, item)
		}
	}
	return names
}

// hidden says of which variables TOML says nothing.
func (v *variables) hidden() string {
	var names []string
	for _, item := range *v.p {
		if name, _, ok := strings.Cut(item, "="); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; not shown, as they have values of their own: " + strings.Join(names, ", ")
}

func (v *variables) String() string {
	if v.p == nil {
		return ""
	}
	return strings.Join(v.TOML().([]string), ",")
}

func (v *variables) Type() string { return "list" }

// readVariables reads a file of variables as `docker run --env-file` has it: a line
// is NAME=value, or NAME for the one that we have; empty lines and those that begin
// with # are passed over. Quotes around a whole value are left out, as dotenv does.
func readVariables(path string) (list []string, err error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("env_file: %w", err)
	}
	number := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(string(text), byteOrderMark), "\n") {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok {
			line = strings.TrimSpace(name) + "=" + unquoted(strings.TrimSpace(value))
		}
		if err := checkVariable(line); err != nil {
			return nil, fmt.Errorf("env_file: line %d of %s: %w", number, path, err)
		}
		list = append(list, line)
	}
	return list, nil
}

func unquoted(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
