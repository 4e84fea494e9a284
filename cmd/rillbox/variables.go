//go:build !windows

package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"rillbox/deno/permission"
)

// variables are environment variables for programs, NAME or NAME=value each. Values
// may be secrets: neither an error here nor what is printed has one.
type variables struct{ list }

// Set reads a list with commas. A value may have commas only in a TOML list or in
// env_file: here none can be told from the list's own.
func (v *variables) Set(text string) error {
	value := false
	for _, item := range items(text) {
		if value && !strings.Contains(item, "=") {
			return errors.New("what follows the comma after a value may be a name or a part of the value: put names first, and values with commas into env_file, or into a list in the TOML file")
		}
		value = value || strings.Contains(item, "=")
		if err := checkVariable(item); err != nil {
			return err
		}
	}
	return v.list.Set(text)
}

func (v *variables) Replace(items []string) error {
	for _, item := range items {
		if err := checkVariable(item); err != nil {
			return err
		}
	}
	return v.list.Replace(items)
}

func checkVariable(item string) error {
	name, value, _ := strings.Cut(item, "=")
	if err := permission.CheckVariable(name); err != nil {
		return err
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("the value of %s has a NUL byte in it, which the environment can't hold", name)
	}
	return nil
}

// GetSlice has the names without values: those with one are left out, so that what
// is printed and read again gives no program a wrong value.
func (v *variables) GetSlice() []string {
	return slices.DeleteFunc(v.list.GetSlice(), func(item string) bool { return strings.Contains(item, "=") })
}

// hidden says which variables GetSlice leaves out.
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

func (v *variables) String() string { return strings.Join(v.GetSlice(), ",") }

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
	for i, line := range strings.Split(strings.TrimPrefix(string(text), byteOrderMark), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok {
			line = strings.TrimSpace(name) + "=" + quoted.ReplaceAllString(strings.TrimSpace(value), "$1$2")
		}
		if err := checkVariable(line); err != nil {
			return nil, fmt.Errorf("env_file: line %d of %s: %w", i+1, path, err)
		}
		list = append(list, line)
	}
	return list, nil
}

// quoted is a value in quotes.
var quoted = regexp.MustCompile(`(?s)^(?:"(.*)"|'(.*)')$`)
