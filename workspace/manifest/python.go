package manifest

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

// inlineMetadata begins a program's own metadata (PEP 723).
var inlineMetadata = regexp.MustCompile(`(?m)^# /// script[ \t]*\r?$`)

// python reads what decides for Python: pyproject.toml, requirements.txt beside the
// program, and a lock file. What the program says itself stands in place of the first two,
// as uv has it.
func (r *reader) python(program, code string) error {
	if inlineMetadata.MatchString(code) {
		return r.scriptLock(program)
	}
	if err := r.pyproject(); err != nil {
		return err
	}
	if err := r.requirements(path.Join(r.base, "requirements.txt")); err != nil {
		return err
	}
	return r.pythonLock()
}

// toml reads a TOML file; there is false where there is none.
func (r *reader) toml(name string, limit int64, into any) (there bool, err error) {
	text, err := r.file(name, limit)
	if err != nil || text == nil {
		return false, err
	}
	if !utf8.Valid(text) {
		return false, fmt.Errorf("%s is not UTF-8 text", r.called(name))
	}
	if err := toml.Unmarshal(text, into); err != nil {
		why := strings.TrimPrefix(err.Error(), "toml: ")
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			why = fmt.Sprintf("line %d", line)
			if key := strings.Join(at.Key(), "."); key != "" {
				why += fmt.Sprintf(", %s", key)
			}
			if text := at.Error(); !strings.Contains(text, "struct") && !strings.Contains(text, "manifest.") {
				why += ": " + strings.TrimPrefix(text, "toml: ")
			} else {
				why += ": another kind of value stands there"
			}
		}
		return false, fmt.Errorf("%s can't be read: %s", r.called(name), why)
	}
	return true, nil
}

// pyproject is what is read of pyproject.toml.
type pyproject struct {
	Project struct {
		Name         string              `toml:"name"`
		Requires     string              `toml:"requires-python"`
		Dependencies []string            `toml:"dependencies"`
		Optional     map[string][]string `toml:"optional-dependencies"`
		Dynamic      []string            `toml:"dynamic"`
	} `toml:"project"`
	Groups map[string][]any `toml:"dependency-groups"`
	Tool   struct {
		UV struct {
			Sources     map[string]any `toml:"sources"`
			Development []string       `toml:"dev-dependencies"`
			Constraints []string       `toml:"constraint-dependencies"`
			Overrides   []any          `toml:"override-dependencies"`
			Index       any            `toml:"index"`
			IndexURL    any            `toml:"index-url"`
			Extra       any            `toml:"extra-index-url"`
		} `toml:"uv"`
		Poetry struct {
			Dependencies map[string]any `toml:"dependencies"`
		} `toml:"poetry"`
	} `toml:"tool"`
}

// pyproject reads the nearest pyproject.toml.
func (r *reader) pyproject() error {
	for _, folder := range r.folders() {
		name := path.Join(folder, "pyproject.toml")
		var p pyproject
		there, err := r.toml(name, maxFile, &p)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		file := r.called(name)
		uv := p.Tool.UV
		for _, field := range []struct {
			name  string
			isSet bool
		}{
			{`"tool.poetry.dependencies"`, len(p.Tool.Poetry.Dependencies) > 0 && len(p.Project.Dependencies) == 0},
			{`"tool.uv.override-dependencies"`, len(uv.Overrides) > 0},
			{`"tool.uv.index"`, uv.Index != nil || uv.IndexURL != nil || uv.Extra != nil},
			{`"dependencies", which is dynamic,`, slices.Contains(p.Project.Dynamic, "dependencies")},
		} {
			if field.isSet {
				r.note("%s: %s is not honoured", file, field.name)
			}
		}
		r.m.Requires = p.Project.Requires
		if name := normalised(p.Project.Name); name != "" {
			r.refuse(name, "%s is of the project %s itself, which is not installed here: its modules are found beside the program", file, name)
		}
		for _, name := range slices.Sorted(maps.Keys(uv.Sources)) {
			r.refuse(normalised(name), "%s has it come from a place of its own (tool.uv.sources), and not from the package index", file)
		}
		lists := [][]string{p.Project.Dependencies, uv.Constraints, uv.Development}
		for _, name := range slices.Sorted(maps.Keys(p.Project.Optional)) {
			lists = append(lists, p.Project.Optional[name])
		}
		for _, name := range slices.Sorted(maps.Keys(p.Groups)) {
			var group []string
			for _, one := range p.Groups[name] {
				if text, is := one.(string); is { // others include groups, all of which are read
					group = append(group, text)
				}
			}
			lists = append(lists, group)
		}
		for i, list := range lists {
			if err := r.counted(len(list)); err != nil {
				return err
			}
			for _, text := range list {
				r.require(text, file, i > 1)
			}
		}
		return nil
	}
	return nil
}

// Parts of requirements: versions that one allows, what a marker compares.
const (
	version  = `(?:===?|~=|!=|<=?|>=?)[ \t]*[A-Za-z0-9_.*+!-]+`
	value    = `(?:"[^"]*"|'[^']*'|[a-z_.]+)`
	compares = value + `[ \t]*(?:===?|~=|!=|<=?|>=?|\bin\b|\bnot[ \t]+in\b)[ \t]*` + value
	versions = version + `(?:[ \t]*,[ \t]*` + version + `)*(?:[ \t]*,)?`
)

var (
	notInName = regexp.MustCompile(`[-_.]+`)
	// aRequirement is one of PEP 508: a name, extras, versions or an address, and a marker.
	aRequirement = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?)[ \t]*(\[[A-Za-z0-9._, \t-]{0,500}\])?[ \t]*` +
		`(@[^;]*|` + versions + `|\([ \t]*` + versions + `[ \t]*\)|)[ \t]*(?:;(.*))?$`)
	aMarker  = regexp.MustCompile(`^[ \t]*` + compares + `(?:[ \t]+(?:and|or)[ \t]+` + compares + `)*[ \t]*$`)
	brackets = strings.NewReplacer("(", " ", ")", " ")
)

// partsOf are the name, extras and versions of a requirement (PEP 508); nil if it is none.
// Whether a marker's brackets fit isn't looked at.
func partsOf(text string) []string {
	m := aRequirement.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil || m[4] != "" && !aMarker.MatchString(brackets.Replace(m[4])) {
		return nil
	}
	return m[:4]
}

// normalised is a project's name as indexes have it.
func normalised(name string) string {
	return strings.ToLower(notInName.ReplaceAllString(name, "-"))
}

// require takes a requirement; an optional one only if there is none of that name.
func (r *reader) require(text, file string, optional bool) {
	text = strings.TrimSpace(text)
	m := partsOf(text)
	if m == nil || len(text) > 2000 || strings.ContainsAny(text, "\x00\r\n") {
		r.note("%s: %.200q is not honoured: it is no requirement of a package (PEP 508)", file, text)
		return
	}
	name := normalised(m[1])
	if rest, is := strings.CutPrefix(m[3], "@"); is {
		if rest = strings.TrimSpace(rest); !strings.HasPrefix(rest, "https://") || !strings.Contains(rest, ".whl") {
			r.refuse(name, "%s has it come from %.200q, which is no wheel at an https: URL", file, rest)
			return
		}
	}
	if r.required == nil {
		r.required = map[string]bool{}
	}
	if optional && r.required[name] || slices.Contains(r.m.Requirements, text) {
		return
	}
	r.required[name] = true
	r.m.Requirements = append(r.m.Requirements, text)
}
