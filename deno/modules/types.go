package modules

import (
	"cmp"
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
	jsx := false
	for file, text := range m.Checked {
		m.Imports = append(m.Imports, typeImports(string(text))...)
		jsx = jsx || strings.HasSuffix(path.Ext(file), "x")
	}
	switch {
	case !jsx:
	case m.jsx.Factory != "":
		m.CheckJSX = map[string]string{"jsx": "react", "jsxFactory": m.jsx.Factory, "jsxFragmentFactory": m.jsx.Fragment}
	default:
		source := cmp.Or(m.jsx.Source, jsxPackage(m.Imports, "npm:react"))
		if !strings.Contains(source, ":") {
			source = "npm:" + source
		}
		m.CheckJSX = map[string]string{"jsx": "react-jsx", "jsxImportSource": source}
		m.Imports = append(m.Imports, source)
		if source == "npm:react" || strings.HasPrefix(source, "npm:react@") { // its types are a package of their own
			m.CheckJSX["jsxImportSourceTypes"] = reactTypes
			m.Imports = append(m.Imports, reactTypes)
		}
	}
}

const reactTypes = "npm:@types/react"
