//go:build !windows

package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"
	"github.com/xhit/go-str2duration/v2"

	"rillbox/deno/permission"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// A scalar is the place of a setting that is written as one text, in a flag, an
// environment variable or the TOML file.
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

func (s scalar[T]) String() string { return s.format(*s.p) }

func (s scalar[T]) Type() string { return s.kind }

// listed is a setting that is a list in the TOML file.
type listed interface {
	Replace(items []string) error
	GetSlice() []string
}

// setTOML gives a setting what the TOML file holds for it.
func setTOML(to pflag.Value, v any) error {
	list, isList := to.(listed)
	switch v := v.(type) {
	case string:
		if !isList || to.Type() == permissionFlags {
			return to.Set(v)
		}
	case bool, int64, float64:
		if !isList && to.Type() != ofText {
			return to.Set(fmt.Sprint(v))
		}
	case []any:
		items := []string{}
		for _, item := range v {
			if text, ok := item.(string); ok {
				items = append(items, text)
			}
		}
		if isList && len(items) == len(v) {
			return list.Replace(items)
		}
	}
	if isList {
		return errors.New("want a list of strings")
	}
	return fmt.Errorf("want a %s", to.Type())
}

// toTOML is what the TOML file would have for a setting.
func toTOML(v pflag.Value) (string, error) {
	var form any = v.String()
	if l, ok := v.(listed); ok {
		form = l.GetSlice()
	} else if v.Type() == ofNumber || v.Type() == ofBool {
		return v.String(), nil
	}
	line, err := toml.Marshal(map[string]any{"": form})
	return strings.TrimPrefix(strings.TrimSpace(string(line)), "'' = "), err
}

// The kinds of settings that are told apart by them.
const (
	ofText          = "string"
	ofNumber        = "number"
	ofBool          = "bool"
	permissionFlags = "flags"
)

func asItIs(s string) string { return s }

func text(p *string) pflag.Value {
	return scalar[string]{p, ofText, func(s string) (string, error) { return s, nil }, asItIs}
}

// secretText is a text that nothing shows.
type secretText struct{ p *string }

func secret(p *string) pflag.Value { return secretText{p} }

func (s secretText) Set(text string) error {
	*s.p = text
	return nil
}

func (s secretText) String() string { return "" }

func (s secretText) Type() string { return ofText }

// hidden says that there is one.
func (s secretText) hidden() string {
	if *s.p == "" {
		return ""
	}
	return "; not shown"
}

// name is a text of one line of visible characters, or empty.
func name(p *string) pflag.Value {
	const most = 200 // bytes
	parse := func(s string) (string, error) {
		if s != job.ShowLine(s, most) {
			return "", fmt.Errorf("want one line of at most %d bytes that can be seen", most)
		}
		return s, nil
	}
	return scalar[string]{p, ofText, parse, asItIs}
}

// choice is a text that must be one of the words given.
func choice(p *string, words ...string) pflag.Value {
	parse := func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", fmt.Errorf("want one of %s", strings.Join(words, ", "))
		}
		return s, nil
	}
	return scalar[string]{p, "word", parse, asItIs}
}

func boolean(p *bool) pflag.Value {
	parse := func(s string) (bool, error) {
		v, err := strconv.ParseBool(s)
		if err != nil {
			return false, errors.New("want true or false (or 1 or 0)")
		}
		return v, nil
	}
	return scalar[bool]{p, ofBool, parse, strconv.FormatBool}
}

// count is a whole number up to most.
func count(p *int, least, most int) pflag.Value {
	parse := func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		return n, nil
	}
	return scalar[int]{p, ofNumber, parse, strconv.Itoa}
}

// The fewest processors with which a program is useful, and more than any machine has.
const fewestCPUs, mostCPUs = 0.1, 1024

// processors is a number of processors, which may have a fraction.
func processors(p *float64) pflag.Value {
	parse := func(s string) (float64, error) {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n >= fewestCPUs && n <= mostCPUs) { // NaN is neither
			return 0, fmt.Errorf("want a number of processors from %v to %v, such as 0.5 or 2", fewestCPUs, mostCPUs)
		}
		return n, nil
	}
	return scalar[float64]{p, ofNumber, parse, func(n float64) string { return fmt.Sprint(n) }}
}

// duration is a Go duration of at least some, with days ("7d") and weeks; a bare number
// counts seconds.
func duration(p *time.Duration, least time.Duration) pflag.Value {
	parse := func(s string) (time.Duration, error) {
		if n, err := strconv.ParseFloat(s, 64); err == nil {
			s = strconv.FormatFloat(n, 'f', -1, 64) + "s"
		}
		d, err := str2duration.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, errors.New(`want a time such as "30s", "5m" or "7d"`)
		}
		if d < least {
			return 0, fmt.Errorf("the least is %v", least)
		}
		return d, nil
	}
	return scalar[time.Duration]{p, "time", parse, str2duration.String}
}

// notSet is a size that was not given.
const notSet = -1

// size is a number of bytes of at least some, with or without a unit ("512MiB").
// Where the least is notSet, it may be empty.
func size(p *int64, least int64) pflag.Value {
	const example = `such as "512MiB" (units: B, KiB, MiB, GiB, TiB)`
	parse := func(s string) (int64, error) {
		if s == "" && least == notSet {
			return notSet, nil
		}
		n, err := units.RAMInBytes(strings.TrimSpace(s))
		if err != nil || n < 0 || n > 1<<62 { // too large a float has no defined value
			return 0, errors.New("want a number of bytes, " + example)
		}
		if n < least {
			return 0, fmt.Errorf("the least is %s; want a size %s", formatSize(least), example)
		}
		return n, nil
	}
	return scalar[int64]{p, "size", parse, formatSize}
}

// formatSize is n in the largest unit, exactly.
func formatSize(n int64) string {
	if n == notSet {
		return ""
	}
	return units.CustomSize("%v%s", float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
}

const readOnlySuffix = ":ro"

// directory is a directory to share, "DIR" or "DIR:ro"; see share.
func directory(p *supervisor.Shared) pflag.Value {
	parse := func(s string) (supervisor.Shared, error) {
		path, readOnly := strings.CutSuffix(s, readOnlySuffix)
		if path == "" && readOnly {
			return supervisor.Shared{}, errors.New("want a directory before " + readOnlySuffix)
		}
		return supervisor.Shared{Path: path, ReadOnly: readOnly}, nil
	}
	return scalar[supervisor.Shared]{p, ofText, parse, formatShared}
}

func formatShared(s supervisor.Shared) string {
	if s.ReadOnly {
		return s.Path + readOnlySuffix
	}
	return s.Path
}

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
	*l.p = append(*l.p, items(text)...)
	return nil
}

func (l *list) Replace(items []string) error {
	*l.p = items
	return nil
}

func (l *list) GetSlice() []string { return append([]string{}, *l.p...) }

func (l *list) String() string { return strings.Join(*l.p, ",") }

func (l *list) Type() string { return "list" }

// items are what stands between the commas of a text.
func items(text string) (list []string) {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// flags are Deno's permission flags, written as on a command line.
type flags struct{ p *permission.Permissions }

func (f flags) Set(text string) (err error) {
	*f.p, err = permission.ParseShell(text)
	return err
}

func (f flags) Replace(items []string) (err error) {
	*f.p, err = permission.Parse(items)
	return err
}

func (f flags) GetSlice() []string { return append([]string{}, f.p.Args()...) }

func (f flags) String() string { return strings.Join(f.p.Args(), " ") }

func (f flags) Type() string { return permissionFlags }
