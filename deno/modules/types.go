package modules

import (
	"path"
	"strings"

	"rillbox/supervisor/job"
)

// typesAt finds the modules that only a check of types reads: Deno's pragmas for the types
// of an import and of JSX, and references.
var typesAt = Pattern(`@(?:ts-types|deno-types|jsxImportSourceTypes)[ \t]*=?[ \t]*["']?([^\s"'*]+)|///[ \t]*<reference[ \t]+types=["']([^"']+)["']`)

// typeImports are what a check of the types of a module's text reads beside its imports.
func typeImports(text string) (specifiers []string) {
	for _, found := range typesAt().FindAllStringSubmatch(text, -1) {
		specifiers = append(specifiers, found[1]+found[2])
	}
	return specifiers
}

// prepareCheck finds what a check of the program's types needs beside what it imports. The
// files are those beside it, as they are.
func (m *Module) prepareCheck(p job.Program, files map[string][]byte) {
	m.Checked = map[string][]byte{m.File: []byte(p.Code)}
	for file := range m.Files {
		m.Checked[file] = files[file]
	}
	for file, text := range m.Checked {
		m.Imports = append(m.Imports, typeImports(string(text))...)
		if strings.HasSuffix(path.Ext(file), "x") {
			m.JSX = jsxPackage(m.Imports, "npm:react")
		}
	}
	if m.JSX != "" && !strings.Contains(m.JSX, ":") {
		m.JSX = "npm:" + m.JSX
	}
	if m.JSXTypes() != "" {
		m.Imports = append(m.Imports, m.JSX, m.JSXTypes())
	}
}

// JSXTypes is the package with the types of what makes JSX, where that is one of its own.
func (m Module) JSXTypes() string {
	if m.JSX == "npm:react" || strings.HasPrefix(m.JSX, "npm:react@") {
		return "npm:@types/react"
	}
	return ""
}
