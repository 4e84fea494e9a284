package modules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"rillbox/supervisor/job"
)

// Module is a program as it will be run, and what was found out about it
// without running it.
type Module struct {
	File     string // its file's name in the run's directory
	Name     string // the name to show
	Code     string // the text to run, the prelude included
	Prelude  prelude
	Commonjs bool
	// MixesCommonJS says that a .js file which it imports is CommonJS, which Deno only sees
	// when it is told to look.
	MixesCommonJS bool
	Imports       []string // what is imported or required by a literal in all of its files, save relative paths
	// Files are those beside it that it imports, by their paths from its own.
	Files map[string][]byte
	// Copies are those that stand for files of the workspace.
	Copies []string
	// Names are what the project's manifest has imports of these modules stand for.
	Names Names
	// Refused says which imports can't be had by that manifest.
	Refused []string
	// Unfollowed is why the modules of its workspace were not looked at.
	Unfollowed error
	// Checked are all files as they are, for a check of their types, and CheckJSX the
	// compiler's options for their JSX; empty where no check is asked for.
	Checked  map[string][]byte
	CheckJSX map[string]string
	// Installed is where the module of a package's command is, below the plan's directory,
	// in place of File and Code.
	Installed string
	Problem   string // where it can't be parsed: "main.js:3:9"; empty if it can
	TooHard   bool   // parsing it was given up
	Unparsed  bool   // it was too plain to be parsed; problem is then not known

	jsx job.JSX
	esm bool // .js files are, whatever they look like
}

// prelude is what was inserted into the program's text, so that tracebacks can
// leave it out: line and column count from 1, in UTF-16 units.
type prelude struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

var loaders = map[string]api.Loader{
	".js": api.LoaderJS, ".mjs": api.LoaderJS, ".cjs": api.LoaderJS, ".jsx": api.LoaderJSX,
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX,
}

var PlainName = Pattern(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`)

// jsxSource stands for the package whose runtime makes JSX elements, until the
// imports say which one that is.
const jsxSource = "rillbox-jsx"

// Inspect finds out how the program must be run and what it imports. A program
// that can't be parsed is not an error here: Deno says better what is wrong.
func Inspect(p job.Program, scan ScanFunc) (Module, error) {
	extensions, err := Extensions(p.Language, p.Name)
	if err != nil {
		return Module{}, err
	}
	extension := extensions[0]
	m := Module{Name: cmp.Or(p.Name, "main"+extension), Code: p.Code, jsx: p.Manifest.JSX, esm: p.Manifest.ESM}
	beside, unfollowed := filesOf(p)
	m.Unfollowed = unfollowed
	var found Scanned
	if m.Unparsed = isPlain(p.Code, extension); !m.Unparsed {
		if found, err = scan(ScanRequest{Code: p.Code, Extensions: extensions, Beside: parsable(beside)}); err != nil {
			return m, err
		}
		m.Name = strings.TrimSuffix(m.Name, extension) + found.Extension
		extension = found.Extension
	}
	m.Imports, m.TooHard = slices.Clone(found.Imports), found.TooHard // a scan is remembered
	if found.Problem != "" {
		m.Problem = m.Name + found.Problem
	}
	m.Commonjs = isCommonJS(extension, found, m.esm)
	m.File = m.Name
	if !PlainName().MatchString(m.File) {
		m.File = "main" + extension
	}
	if m.Commonjs && extension == ".js" {
		m.File = strings.TrimSuffix(m.File, ".js") + ".cjs"
	}
	where := ""
	if p.Path != "" {
		m.File, where = path.Join(path.Dir(p.Path), m.File), filepath.Join(p.Workspace, filepath.FromSlash(p.Path))
	}
	m.insertPrelude(found, mainPrelude(p.URL, where))
	for i, specifier := range m.Imports {
		m.Imports[i] = fromURL(p.URL, specifier)
	}
	names := namesOf(p)
	m.reach(cmp.Or(p.Path, m.Name), names, beside, found.Beside)
	if p.Check {
		m.prepareCheck(p, beside)
	}
	if p.Path != "" && m.File == p.Path {
		m.Copies = append(m.Copies, p.Path)
	}
	for file, content := range m.Files {
		if _, own := p.Files[file]; own {
			continue
		} else if bytes.Equal(content, beside[file]) { // it is imported from where it is
			delete(m.Files, file)
		} else {
			m.Copies = append(m.Copies, file)
		}
	}
	slices.Sort(m.Copies)
	shown := path.Join(p.Folder, m.Name)
	if p.Path != "" {
		shown = path.Join(path.Dir(p.Path), m.Name)
	}
	if m.Problem != "" {
		m.Problem = shown + strings.TrimPrefix(m.Problem, m.Name)
	}
	m.Name = shown
	if _, taken := m.Files[m.File]; taken { // m.File is a name of ours, then
		m.File = "program" + path.Ext(m.File)
	}
	return m, nil
}

// InspectCell finds out what a cell of a session imports, and what the modules of its
// workspace that it imports do; r asks for the cell.
func InspectCell(p job.Program, r ScanRequest, scan ScanFunc) (Module, Scanned, error) {
	m := Module{Code: p.Code, jsx: p.Manifest.JSX, esm: p.Manifest.ESM}
	var beside map[string][]byte
	beside, m.Unfollowed = filesOf(p)
	r.Beside = parsable(beside)
	found, err := scan(r)
	if err != nil {
		return m, found, err
	}
	m.Imports = slices.Clone(found.Imports) // a scan is remembered
	m.reach("", namesOf(p), beside, found.Beside)
	return m, found, nil
}

// isCommonJS says that a module is one of CommonJS; esm that the project's .js files are none.
func isCommonJS(extension string, found Scanned, esm bool) bool {
	return extension == ".cjs" || extension == ".cts" ||
		extension == ".js" && !esm && (found.Format == "cjs" || found.Format == "" && found.Requires)
}

// Extensions are those that a program's file name may have, the first unless it can't
// be parsed under that: what has no name may be JSX, which has an extension of its own.
func Extensions(language job.Language, name string) ([]string, error) {
	if name == "" {
		extension := map[job.Language]string{job.JavaScript: ".js", job.TypeScript: ".ts"}[language]
		return []string{extension, extension + "x"}, nil
	}
	extension := path.Ext(name)
	if _, known := loaders[extension]; !known {
		return nil, job.Refuse("the file name %q has none of the extensions .js .mjs .cjs .jsx .ts .mts .cts .tsx", name)
	}
	return []string{extension}, nil
}

// mainPrelude makes a module the main one, of a URL or of a file in a workspace, if it is
// there.
func mainPrelude(address, file string) string {
	text := "import.meta.main=true;"
	if file != "" {
		at := url.URL{Scheme: "file", Path: file}
		text += fmt.Sprintf("import.meta.filename=%s;import.meta.dirname=%s;", literal(file), literal(filepath.Dir(file)))
		address = at.String()
	}
	if address != "" {
		text += fmt.Sprintf("import.meta.url=%s;", literal(address))
	}
	return text
}

// fromURL is a specifier as it is meant by a module at a URL, if that is not empty.
func fromURL(address, specifier string) string {
	base, err := url.Parse(address)
	if err == nil && address != "" && (isRelative(specifier) || strings.HasPrefix(specifier, "/")) {
		if at, err := base.Parse(specifier); err == nil {
			return at.String()
		}
	}
	return specifier
}

// literal is a text as JavaScript writes it.
func literal(text string) string {
	quoted, _ := json.Marshal(text) // a string can be written
	return string(quoted)
}

// insertPrelude puts in front of a module, on its first line of code, meta, which sets
// its import.meta, if it is asked for that, and what its use of JSX and require needs.
func (m *Module) insertPrelude(found Scanned, meta string) {
	text := ""
	if i := slices.Index(m.Imports, jsxSource+"/jsx-runtime"); i >= 0 {
		if m.jsx.Factory != "" {
			m.Imports = slices.Delete(m.Imports, i, i+1)
			text += "/** @jsxRuntime classic *//** @jsx " + m.jsx.Factory + " *//** @jsxFrag " + m.jsx.Fragment + " */"
		} else {
			source := cmp.Or(m.jsx.Source, jsxPackage(m.Imports, "react"))
			m.Imports[i] = source + "/jsx-runtime"
			text += "/** @jsxRuntime automatic *//** @jsxImportSource " + source + " */"
		}
	}
	if !m.Commonjs && strings.Contains(m.Code, "import.meta") {
		text += meta
	}
	if !m.Commonjs && found.Requires {
		text += `import{createRequire as $rillbox}from"node:module";const require=$rillbox(import.meta.url);`
	}
	if text == "" {
		return
	}
	at := codeStart(m.Code)
	before := m.Code[:at]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	m.Prelude = prelude{
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf16Length(line),
		Text:   text,
	}
	m.Code = before + text + m.Code[at:]
}

// leading is what may stand before a program's first line of code: a #! line, space
// and comments.
var leading = Pattern(`^(?:#![^\n]*)?(?:[ \t\r\n\x{FEFF}]|//[^\n]*|/\*[\s\S]*?\*/)*`)

// codeStart is where the first line of code is.
func codeStart(code string) int { return len(leading().FindString(code)) }

// jsxPackage is the package that makes JSX elements: the one of the well-known
// ones that the program imports, else otherwise.
func jsxPackage(imports []string, otherwise string) string {
	for _, text := range imports {
		s, err := ParseSpecifier(text)
		if err != nil || s.Scheme != "npm" {
			continue
		}
		switch s.Name {
		case "react", "preact":
			return strings.TrimSuffix(text, s.Path)
		case "react-dom": // React's, of the same version
			return strings.Replace(strings.TrimSuffix(text, s.Path), "react-dom", "react", 1)
		case "preact-render-to-string":
			return "preact"
		case "hono":
			return strings.TrimSuffix(text, s.Path) + "/jsx"
		}
	}
	return otherwise
}

// telling are the words without which a program imports nothing, exports nothing
// and is no CommonJS module (return stands at the top level of those alone).
// Keywords can't be written with escapes, names can.
var telling = []string{"import", "export", "require", "module", "return", `\u`}

// isPlain says that a parse of the program would tell nothing: a look that errs
// on the side of parsing, since the words may stand in strings and comments.
func isPlain(code, extension string) bool {
	if strings.HasSuffix(extension, "x") {
		return false
	}
	for _, word := range telling {
		if strings.Contains(code, word) {
			return false
		}
	}
	return !MayBeJSX(code)
}

// MayBeJSX says that there may be JSX, all of which ends in "</…>" or "/>".
// Between those signs there may be space and comments; a comment begins and ends
// with a slash, save that "//" ends with its line.
func MayBeJSX(code string) bool { return strings.Contains(code, "<") && jsxEnd().MatchString(code) }

const blank = `\x00-\x08\n-\x1f\x{80}-\x{10ffff}` // beside space and tab

var jsxEnd = Pattern(`<[ \t` + blank + `]*/|/[ \t` + blank + `]*>|[` + blank + `][ \t` + blank + `]*>`)

// Scanned is what a parse tells of a program.
type Scanned struct {
	Imports  []string `json:"imports"`
	Requires bool     `json:"requires"`
	Format   string   `json:"format"`  // "esm", "cjs" or ""
	Problem  string   `json:"problem"` // where it can't be parsed: ":3:9"
	// Extension is that of the file name under which it was parsed.
	Extension string `json:"extension"`
	// JSX is the package that makes a cell's elements of JSX, Script the cell as a
	// script; empty where its own code is one.
	JSX    string `json:"jsx,omitempty"`
	Script Script `json:"script,omitzero"`
	// Beside is what a parse tells of the files beside the program, by their paths.
	Beside map[string]Scanned `json:"beside,omitempty"`
	// TooHard says that parsing it was given up; nothing else is then known.
	TooHard bool `json:"-"`
}

// ScanFunc has a program parsed.
type ScanFunc func(ScanRequest) (Scanned, error)

// scanAny parses a program whose file name has one of the extensions: the first
// under which it can be parsed, else the first.
func scanAny(code string, extensions ...string) Scanned {
	var first Scanned
	for i, extension := range extensions {
		found := scan(code, loaders[extension])
		found.Extension = extension
		if found.Problem == "" {
			return found
		}
		if i == 0 {
			first = found
		}
	}
	return first
}

var ownPragma = Pattern(`@jsx(Runtime|Frag)?\s`)

// scan parses a program with esbuild.
func scan(code string, loader api.Loader) Scanned {
	jsx := api.JSXAutomatic
	if ownPragma().MatchString(code) {
		jsx = api.JSXPreserve // the program says itself what makes its elements
	}
	found, problem := scanTogether([]source{{code, loader}}, jsx)
	if problem != "" {
		return Scanned{Problem: problem}
	}
	return found[0]
}

// scanFiles parses files, by their paths: all at once, which takes a tenth of the time
// for each, unless one of them can't be parsed.
func scanFiles(files map[string]string) map[string]Scanned {
	found := map[string]Scanned{}
	var names []string
	var sources []source
	for file, code := range files {
		if ownPragma().MatchString(code) {
			found[file] = scanAny(code, path.Ext(file))
		} else {
			names, sources = append(names, file), append(sources, source{code, loaders[path.Ext(file)]})
		}
	}
	together, problem := scanTogether(sources, api.JSXAutomatic)
	for i, file := range names {
		if problem != "" {
			found[file] = scanAny(files[file], path.Ext(file))
			continue
		}
		together[i].Extension = path.Ext(file)
		found[file] = together[i]
	}
	return found
}

type source struct {
	code   string
	loader api.Loader
}

// scanTogether parses sources. problem is where the first that was found wrong can't be
// parsed; nothing else is then known. Nothing is read from disk.
func scanTogether(sources []source, jsx api.JSX) (found []Scanned, problem string) {
	found = make([]Scanned, len(sources))
	const space = "source"
	var entries []string
	for i := range sources {
		entries = append(entries, strconv.Itoa(i))
	}
	var mu sync.Mutex // esbuild resolves and loads side by side
	options := api.BuildOptions{
		EntryPoints: entries,
		Outdir:      "/",
		Bundle:      true,
		Metafile:    true,
		LogLevel:    api.LogLevelSilent,
		Target:      api.ESNext,
		Format:      api.FormatESModule,
		TsconfigRaw: `{"compilerOptions":{"verbatimModuleSyntax":true,"experimentalDecorators":true}}`,
		JSX:         jsx, JSXImportSource: jsxSource,
		Plugins: []api.Plugin{{Name: "scan", Setup: func(build api.PluginBuild) {
			build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				if a.Kind == api.ResolveEntryPoint {
					return api.OnResolveResult{Path: a.Path, Namespace: space}, nil
				}
				i, _ := strconv.Atoi(strings.TrimPrefix(a.Importer, space+":"))
				mu.Lock()
				defer mu.Unlock()
				if !slices.Contains(found[i].Imports, a.Path) {
					found[i].Imports = append(found[i].Imports, a.Path)
				}
				if a.Kind == api.ResolveJSRequireCall || a.Kind == api.ResolveJSRequireResolve {
					found[i].Requires = true
				}
				return api.OnResolveResult{Path: a.Path, External: true}, nil
			})
			build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: space}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
				i, err := strconv.Atoi(a.Path)
				return api.OnLoadResult{Contents: &sources[i].code, Loader: sources[i].loader, ResolveDir: "/"}, err
			})
		}}},
	}
	result := api.Build(options)
	if len(result.Errors) > 0 {
		if at := result.Errors[0].Location; at != nil {
			return nil, fmt.Sprintf(":%d:%d", at.Line, at.Column+1)
		}
		return nil, ":1:1"
	}
	var meta struct {
		Inputs map[string]struct {
			Format string `json:"format"`
		} `json:"inputs"`
	}
	_ = json.Unmarshal([]byte(result.Metafile), &meta) // esbuild wrote it
	for i := range found {
		found[i].Format = meta.Inputs[space+":"+strconv.Itoa(i)].Format
		slices.Sort(found[i].Imports) // esbuild resolves them in no fixed order
	}
	return found, ""
}

// UsesSystem says that the program imports a module of Node's that looks at the
// machine.
func (m Module) UsesSystem() bool {
	return slices.ContainsFunc(m.Imports, func(name string) bool {
		return slices.Contains([]string{"process", "os", "fs", "fs/promises"}, strings.TrimPrefix(name, "node:"))
	})
}
