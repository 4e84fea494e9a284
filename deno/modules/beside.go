package modules

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// relative finds what may be a relative path that a module is imported by; it may stand
// in a string or a comment as well.
var relative = Pattern("[\"'`](\\.\\.?(?:/[^\"'`\\\\\n]*)?)[\"'`]")

// called finds relative paths by which calls load modules that are no imports: workers,
// and what createRequire gives.
var called = Pattern("(?:Worker\\(\\s*new\\s+URL|createRequire\\([^()]*\\)|\\brequire(?:\\.resolve)?)\\(\\s*[\"'`](\\.\\.?(?:/[^\"'`\\\\\n]*)?)[\"'`]")

// mainOf finds the main file that a package.json names.
var mainOf = Pattern(`"main"\s*:\s*"([^"\\]*)"`)

// Mentions gives a function that finds the files, by their paths below the program's
// directory, that its module in file may import. Which of them it does is told by a parse.
func Mentions(p job.Program) func(file, code string) []string {
	names := namesOf(p)
	return func(file, code string) []string {
		files := names.mentions(file, code)
		for _, found := range relative().FindAllStringSubmatch(code, -1) {
			files = append(files, meant(file, found[1])...)
		}
		for _, specifier := range mainsOf(file, code) {
			files = append(files, meant(file, specifier)...)
		}
		return files
	}
}

// filesOf are the program's files and those of its workspace that it mentions. An error
// says why the latter are not known; they are imported from where they are all the same.
func filesOf(p job.Program) (map[string][]byte, error) {
	mentions := Mentions(p)
	if p.Workspace == "" || len(mentions(cmp.Or(p.Path, "main.js"), p.Code)) == 0 {
		return p.Files, nil
	}
	dir, err := workspace.Open(p.Workspace, workspace.Options{ReadOnly: true})
	if err != nil {
		return p.Files, err
	}
	defer dir.Close()
	files, err := dir.Modules(p.Path, p.Code, mentions)
	if err != nil {
		return p.Files, err
	}
	maps.Copy(files, p.Files)
	return files, nil
}

// mainsOf are the relative paths of what a directory stands for, if the file is its
// package.json.
func mainsOf(file, text string) (specifiers []string) {
	if path.Base(file) == "package.json" {
		for _, found := range mainOf().FindAllStringSubmatch(text, -1) {
			specifiers = append(specifiers, "./"+found[1])
		}
	}
	return specifiers
}

// isRelative says that a specifier is a path from the module that has it.
func isRelative(specifier string) bool {
	return strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../") || specifier == "." || specifier == ".."
}

// meant are the files, below the program's directory, that a module may mean by a
// relative specifier: the path itself or, as require has it, what that stands for.
func meant(file, specifier string) []string {
	text, _, _ := strings.Cut(specifier, "?")
	text, _, _ = strings.Cut(text, "#")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	at := path.Join(path.Dir(file), text)
	if at == ".." || strings.HasPrefix(at, "../") {
		return nil
	}
	below := at + "/"
	if at == "." {
		below = ""
	}
	return []string{at, at + ".js", at + ".json", below + "package.json", below + "index.js", below + "index.json"}
}

// calledBy are the relative paths by which calls in a module's text load modules.
func calledBy(text string) (specifiers []string) {
	for _, found := range called().FindAllStringSubmatch(text, -1) {
		specifiers = append(specifiers, found[1])
	}
	return specifiers
}

// parsable are the texts of the files that can be parsed, by their paths.
func parsable(files map[string][]byte) map[string]string {
	var texts map[string]string
	for file, content := range files {
		if _, known := loaders[path.Ext(file)]; known && utf8.Valid(content) {
			if texts == nil {
				texts = map[string]string{}
			}
			texts[file] = string(content)
		}
	}
	return texts
}

// reach takes from the program's files those that it imports by relative paths, those
// that these import, and so on, and adds what they import to the program's imports.
// name is the program's own file.
func (m *Module) reach(name string, names names, files map[string][]byte, scanned map[string]Scanned) {
	type imports struct {
		file string
		all  []string
	}
	own := append(m.Imports, calledBy(m.Code)...)
	m.Imports = nil
	for queue := []imports{{name, own}}; len(queue) > 0; queue = queue[1:] {
		scopes := names.scopesOf(queue[0].file)
		for _, specifier := range queue[0].all {
			from := queue[0].file
			meaning, named, reason := names.find(scopes, specifier)
			switch {
			case reason != "":
				m.Refused = append(m.Refused, fmt.Sprintf("import %q: %s", specifier, reason))
				continue
			case named:
				m.name(specifier, meaning)
				specifier, from = meaning.target, ""
			}
			if !isRelative(specifier) {
				if !slices.Contains(m.Imports, specifier) {
					m.Imports = append(m.Imports, specifier)
				}
				continue
			}
			for _, file := range meant(from, specifier) {
				content, there := files[file]
				if _, reached := m.Files[file]; !there || reached || file == name {
					continue
				}
				if m.Files == nil {
					m.Files = map[string][]byte{}
				}
				if mains := mainsOf(file, string(content)); mains != nil {
					queue = append(queue, imports{file, mains})
				}
				found, parsed := scanned[file]
				if parsed {
					one := Module{Code: string(content), Imports: slices.Clone(found.Imports), Commonjs: isCommonJS(path.Ext(file), found, m.esm), jsx: m.jsx}
					m.MixesCommonJS = m.MixesCommonJS || one.Commonjs && path.Ext(file) == ".js"
					one.insertPrelude(found, "")
					content = []byte(one.Code)
					queue = append(queue, imports{file, append(one.Imports, calledBy(string(content))...)})
				}
				m.Files[file] = content
			}
		}
	}
	for name, target := range names.imports { // also for what is imported by a computed name
		if at := names.place(target); strings.HasSuffix(name, "/") && at != "" {
			m.name(name, meaning{target: at})
		}
	}
}
