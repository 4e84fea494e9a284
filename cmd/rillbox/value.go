//go:build !windows

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"rillbox/deno"
	"rillbox/supervisor"
)

// A value is one setting's place in a config: it reads the setting from text
// (a flag or an environment variable) and from what TOML holds. It is a
// pflag.Value, so that the same code reads flags.
type value interface {
	// Set reads the value from a flag or an environment variable.
	Set(text string) error
	// SetTOML reads it from what a TOML file holds for its key.
	SetTOML(v any) error
	// TOML is the value in the form that a TOML file has for it.
	TOML() any
	String() string
	Type() string
}

// scalar is a value with one word for its text.
type scalar[T any] struct {
	p      *T
	kind   string
	parse  func(string) (T, error)
	format func(T) string
}

func (s scalar[T]) Set(text string) error {
	v, err := s.parse(text)
	if err != nil {
		return err
	}
	*s.p = v
	return nil
}

func (s scalar[T]) SetTOML(v any) error {
	switch v := v.(type) {
	case string:
		return s.Set(v)
	case bool, int64, float64:
		return s.Set(fmt.Sprint(v))
	}
	return fmt.Errorf("want a %s, not %v", s.kind, v)
}

func (s scalar[T]) TOML() any {
	switch v := any(*s.p).(type) {
	case bool, int, float64:
		return v
	}
	return s.String()
}

func (s scalar[T]) String() string {
	if s.p == nil {
		return ""
	}
	return s.format(*s.p)
}

func (s scalar[T]) Type() string { return s.kind }

func text(p *string) value {
	same := func(s string) string { return s }
	return scalar[string]{p, "string", func(s string) (string, error) { return s, nil }, same}
}

// name is a text of one line without what can't be seen, or empty.
func name(p *string) value {
	const most = 200 // bytes
	parse := func(s string) (string, error) {
		if s != supervisor.ShowLine(s, most) {
			return "", fmt.Errorf("want one line of at most %d bytes that can be seen", most)
		}
		return s, nil
	}
	return scalar[string]{p, "string", parse, func(s string) string { return s }}
}

// choice is a text that must be one of the words given.
func choice(p *string, words ...string) value {
	parse := func(s string) (string, error) {
		for _, w := range words {
			if s == w {
				return s, nil
			}
		}
		return "", fmt.Errorf("want one of %s", strings.Join(words, ", "))
	}
	return scalar[string]{p, "word", parse, func(s string) string { return s }}
}

func boolean(p *bool) value {
	parse := func(s string) (bool, error) {
		v, err := strconv.ParseBool(s)
		if err != nil {
			return false, errors.New("want true or false (or 1 or 0)")
		}
		return v, nil
	}
	return scalar[bool]{p, "bool", parse, strconv.FormatBool}
}

func count(p *int) value {
	return number(p, math.MaxInt, "want a whole number from 0")
}

// countTo is a count up to most.
func countTo(p *int, most int) value {
	return number(p, most, fmt.Sprintf("want a whole number from 0 to %d", most))
}

func number(p *int, most int, want string) value {
	parse := func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > most {
			return 0, errors.New(want)
		}
		return n, nil
	}
	return scalar[int]{p, "number", parse, strconv.Itoa}
}

// The fewest processors that a program gets somewhere with, and more than any
// machine has.
const fewestCPUs, mostCPUs = 0.1, 1024

// processors is a number of processors, in parts too.
func processors(p *float64) value {
	parse := func(s string) (float64, error) {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n >= fewestCPUs && n <= mostCPUs) { // also when it is no number
			return 0, fmt.Errorf("want a number of processors from %v to %v, such as 0.5 or 2", fewestCPUs, mostCPUs)
		}
		return n, nil
	}
	format := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	return scalar[float64]{p, "number", parse, format}
}

// duration is a Go duration; a bare number counts seconds, and days ("7d") are
// known beside Go's units.
func duration(p *time.Duration) value {
	parse := func(s string) (time.Duration, error) {
		wrong := errors.New(`want a time such as "30s", "5m" or "7d"`)
		if n, err := strconv.ParseFloat(s, 64); err == nil {
			s = strconv.FormatFloat(n, 'f', -1, 64) + "s"
		}
		if days, ok := strings.CutSuffix(s, "d"); ok {
			n, err := strconv.Atoi(days)
			if err != nil || n < 0 || n > 36500 {
				return 0, wrong
			}
			return time.Duration(n) * 24 * time.Hour, nil
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, wrong
		}
		return d, nil
	}
	return scalar[time.Duration]{p, "time", parse, formatDuration}
}

func formatDuration(d time.Duration) string {
	if d >= 24*time.Hour && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// byteUnits are the units of sizes, largest first.
var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// size is a number of bytes, with or without a unit ("512MiB").
func size(p *int64) value { return sizeFrom(p, 0) }

// notSet is an optional size that was not given.
const notSet = -1

// optionalSize is a size, or nothing.
func optionalSize(p *int64) value {
	s := sizeFrom(p, 0)
	parse := func(text string) (int64, error) {
		if text == "" {
			return notSet, nil
		}
		return s.parse(text)
	}
	format := func(n int64) string {
		if n == notSet {
			return ""
		}
		return formatSize(n)
	}
	return scalar[int64]{p, "size", parse, format}
}

// sizeFrom is a size of at least some bytes.
func sizeFrom(p *int64, least int64) scalar[int64] {
	parse := func(s string) (int64, error) {
		number, unit := strings.TrimSpace(s), int64(1)
		for _, u := range byteUnits {
			if rest, ok := strings.CutSuffix(number, u.suffix); ok {
				number, unit = strings.TrimSpace(rest), u.bytes
				break
			}
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 || n > (1<<62)/unit {
			return 0, errors.New(`want a number of bytes, such as "512MiB" (units: B, KiB, MiB, GiB, TiB)`)
		}
		if n*unit < least {
			return 0, fmt.Errorf(`the least is %s; want a size such as "512MiB" (units: B, KiB, MiB, GiB, TiB)`, formatSize(least))
		}
		return n * unit, nil
	}
	return scalar[int64]{p, "size", parse, formatSize}
}

// formatSize is n in the largest unit that divides it.
func formatSize(n int64) string {
	for _, u := range byteUnits {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// directory is a directory to share, "DIR" or "DIR:ro"; see share.
type directory struct{ p *supervisor.Shared }

const readOnlySuffix = ":ro"

func (d directory) Set(text string) error {
	path, readOnly := strings.CutSuffix(text, readOnlySuffix)
	if path == "" && readOnly {
		return errors.New("want a directory before " + readOnlySuffix)
	}
	*d.p = supervisor.Shared{Path: path, ReadOnly: readOnly}
	return nil
}

func (d directory) SetTOML(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("want a string, not %v", v)
	}
	return d.Set(text)
}

func (d directory) TOML() any { return d.String() }

func (d directory) String() string {
	switch {
	case d.p == nil || d.p.Path == "":
		return ""
	case d.p.ReadOnly:
		return d.p.Path + readOnlySuffix
	}
	return d.p.Path
}

func (d directory) Type() string { return "DIR[:ro]" }

// list is a list of strings without commas, written with commas between them.
// A flag given again adds to the list.
type list struct {
	p     *[]string
	given bool // Set was called, so the list is no longer the default
}

func (l *list) Set(text string) error {
	if !l.given {
		*l.p, l.given = []string{}, true
	}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			*l.p = append(*l.p, item)
		}
	}
	return nil
}

func (l *list) SetTOML(v any) (err error) {
	*l.p, err = stringsOf(v)
	return err
}

func (l *list) TOML() any { return append([]string{}, *l.p...) }

func (l *list) String() string {
	if l.p == nil {
		return ""
	}
	return strings.Join(*l.p, ",")
}

func (l *list) Type() string { return "list" }

// flags are Deno's permission flags, written as on a command line.
type flags struct{ p *deno.Permissions }

func (f flags) Set(text string) (err error) {
	*f.p, err = deno.ParseShell(text)
	return err
}

func (f flags) SetTOML(v any) error {
	if text, ok := v.(string); ok {
		return f.Set(text)
	}
	words, err := stringsOf(v)
	if err != nil {
		return err
	}
	*f.p, err = deno.Parse(words)
	return err
}

func (f flags) TOML() any { return append([]string{}, f.p.Args()...) }

func (f flags) String() string {
	if f.p == nil {
		return ""
	}
	return strings.Join(f.p.Args(), " ")
}

func (f flags) Type() string { return "flags" }

// stringsOf reads a TOML array of strings.
func stringsOf(v any) ([]string, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("want a list of strings, not %v", v)
	}
	list := []string{}
	for _, item := range items {
		s, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("want a list of strings; %v is none", item)
		}
		list = append(list, s)
	}
	return list, nil
}
