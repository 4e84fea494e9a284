package pyodide

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"rillbox/supervisor/job"
)

// What may be an import; it may stand in a string or a comment as well.
var (
	anImport = regexp.MustCompile(`(?m)(?:^|[;:])[ \t\f]*import[ \t\f]+([\pL\pN\pM\p{Pc}., \t\f]+)`)
	aFrom    = regexp.MustCompile(`\bfrom[ \t\f]*(\.[. \t\f]*)?([\pL\pN\pM\p{Pc}.]*)[ \t\f]*import\b`)
	aName    = regexp.MustCompile(`[\pL\pN\pM\p{Pc}]+`)
	// A call that imports, and the name that it is given.
	aCall = regexp.MustCompile(`\b(?:import_module|__import__|find_spec|run_module|run_path)[ \t]*\([^"')]{0,100}["']([^"'\n]*)`)
	// A package's own list of its modules.
	anAll = regexp.MustCompile(`__all__[^=\n(]*[=(]([^\])]*)`)
	// What looks through a package.
	aLook = regexp.MustCompile(`\b(?:pkgutil|iter_modules|walk_packages|__path__)\b`)
	// What puts a directory on sys.path, and what tells of one.
	onPath = regexp.MustCompile(`\b(?:sys\.path|addsitedir|run_path|iter_modules|walk_packages)\b`)
	aPath  = regexp.MustCompile(`\b(?:sys\.path|addsitedir|__file__|run_path|iter_modules|walk_packages|Path\(|path\.join|dirname)`)
	aText  = regexp.MustCompile(`"([^"\\\n*?[]*)"|'([^'\\\n*?[]*)'`)
)

// nearPath is how far from what may tell of a directory its names are looked for, in bytes.
const nearPath = 200

// mentions gives what tells the files that the files of one program may import.
func mentions(job.Program) func(file, code string) []string {
	f := &follower{roots: []string{""}}
	return f.mentions
}

// follower knows what a program's files have told so far. All paths are from its directory.
type follower struct {
	roots   []string // where modules are looked for
	modules []string // what was looked for there
	whole   []string // folders of which all modules are told, and of the packages in them
}

func (f *follower) mentions(file, code string) (files []string) {
	code = norm.NFKC.String(strings.NewReplacer("\\\r\n", " ", "\\\n", " ").Replace(code))
	var modules, folders []string
	for _, found := range anImport.FindAllStringSubmatch(code, -1) {
		for one := range strings.SplitSeq(found[1], ",") {
			if words := strings.Fields(one); len(words) > 0 { // before "as"
				modules = append(modules, words[0])
			}
		}
	}
	for _, at := range aFrom.FindAllStringSubmatchIndex(code, -1) {
		group := func(i int) string { return code[max(at[2*i], 0):max(at[2*i+1], 0)] }
		found := []string{group(0), group(1), group(2)}
		dots, names := strings.Count(found[1], "."), aName.FindAllString(imported(code[at[1]:]), -1)
		if dots == 0 {
			modules = append(modules, found[2])
		} else {
			files = append(files, relative(file, dots, found[2])...)
		}
		for _, name := range names {
			if dots == 0 {
				modules = append(modules, found[2]+"."+name)
			} else {
				files = append(files, relative(file, dots, strings.TrimPrefix(found[2]+"."+name, "."))...)
			}
		}
	}
	for _, found := range aCall.FindAllStringSubmatch(code, -1) {
		text, _, computed := strings.Cut(found[1], "{")
		name := strings.TrimLeft(text, ".")
		dots := len(text) - len(name)
		if end := strings.LastIndex(name, "."); computed || end == len(name)-1 {
			if dots > 0 {
				name = path.Join(path.Dir(file), strings.Repeat("../", dots-1), asPath(name[:max(end, 0)]))
			} else {
				name = asPath(name[:max(end, 0)])
			}
			folders = append(folders, name)
		} else if dots > 0 {
			files = append(files, relative(file, dots, name)...)
		} else {
			modules = append(modules, name)
		}
	}
	if path.Base(file) == "__init__.py" {
		for _, found := range anAll.FindAllStringSubmatch(code, -1) {
			for _, name := range texts(found[1]) {
				files = append(files, filesOf(path.Dir(file), name)...)
			}
		}
		if slices.ContainsFunc(f.whole, func(folder string) bool { return strings.HasPrefix(file, folder+"/") }) {
			folders = append(folders, path.Dir(file))
		}
	}
	looks := aLook.MatchString(code)
	if looks {
		folders = append(folders, path.Dir(file))
		for _, module := range modules {
			folders = append(folders, asPath(module))
		}
	}
	old := len(f.roots)
	if onPath.MatchString(code) {
		named := near(file, code)
		f.roots = append(f.roots, named[:min(len(named), maxRoots-len(f.roots))]...)
		if looks {
			folders = append(folders, named...)
		}
		files = append(files, named...) // what runpy.run_path runs
	}
	for i, root := range f.roots {
		asked := modules
		if i >= old {
			asked = append(modules[:len(modules):len(modules)], f.modules...)
		}
		for _, module := range asked {
			files = append(files, filesOf(root, module)...)
		}
	}
	f.modules = append(f.modules, modules[:min(len(modules), maxImports-len(f.modules))]...)
	for _, folder := range folders {
		for _, root := range f.roots {
			if folder := path.Join(root, folder); folder != "." && !leadsOut(folder) && !slices.Contains(f.whole, folder) {
				f.whole = append(f.whole, folder)
				files = append(files, folder+"/*.py", folder+"/*/__init__.py")
			}
		}
	}
	return slices.DeleteFunc(files, func(file string) bool { return leadsOut(path.Clean(file)) })
}

// near are the paths of what texts name near words that tell of a directory: from the
// folder of the file or one above, and those folders.
func near(file, code string) (named []string) {
	add := func(name string) {
		if name = path.Clean(name); !leadsOut(name) && !slices.Contains(named, name) && len(named) < maxNamed {
			named = append(named, name)
		}
	}
	for folder := path.Dir(file); ; folder = path.Dir(folder) {
		end := 0
		for _, at := range aPath.FindAllStringIndex(code, -1) {
			end = max(end, at[0])
			window := code[end:min(len(code), max(end, at[1]+nearPath))]
			end += len(window)
			joined := ""
			for _, text := range texts(window) {
				joined = path.Join(joined, text)
				add(path.Join(folder, text))
				add(path.Join(folder, joined))
			}
		}
		if folder == "." {
			return named
		}
		add(folder)
	}
}

// A program's modules are looked for in so many directories, of which one file may name
// so many, and so many names are looked for in those that are told of later.
const (
	maxRoots   = 30
	maxNamed   = 20
	maxImports = 10000
)

// texts are the literals in a piece of code, as what may be put to a path.
func texts(code string) (found []string) {
	for _, text := range aText.FindAllStringSubmatch(code, -1) {
		if text := strings.TrimLeft(text[1]+text[2], "/"); text != "" {
			found = append(found, text)
		}
	}
	return found
}

// imported is what stands after "from x import". What follows it may import as well, and
// so may what stands in a parenthesis, which is only one in a comment.
func imported(rest string) string {
	rest = strings.TrimLeft(rest[:min(len(rest), maxNames)], " \t\f") + "\n"
	end := strings.IndexAny(rest, "\n;")
	if close := strings.IndexByte(rest, ')'); strings.HasPrefix(rest, "(") && close >= 0 {
		end = close
	}
	return rest[:max(end, 0)]
}

// maxNames is how many bytes of names one import is looked through for.
const maxNames = 4000

// relative are the files that an import of a module from a file may run, with dots
// before its name.
func relative(file string, dots int, module string) []string {
	base := path.Join(path.Dir(file), strings.Repeat("../", dots-1))
	if leadsOut(base) {
		return nil
	}
	return filesOf(base, module)
}

// leadsOut says that a clean path leads out of the program's directory, or that it is none.
func leadsOut(name string) bool {
	return name == "" || name == ".." || strings.HasPrefix(name, "../") || path.IsAbs(name)
}

// asPath is the folder of a package.
func asPath(module string) string { return strings.ReplaceAll(strings.Trim(module, "."), ".", "/") }

// filesOf are those that an import of a module below the folder base may run.
func filesOf(base, module string) (files []string) {
	for part := range strings.SplitSeq(module, ".") {
		if part == "" {
			break
		}
		base = path.Join(base, part)
		files = append(files, base+".py", base+"/__init__.py")
	}
	return files
}
