package pyodide

import (
	"path"
	"regexp"
	"strings"
)

// What may be an import; it may stand in a string or a comment as well.
var (
	anImport = regexp.MustCompile(`(?m)(?:^|[;:])[ \t]*import[ \t]+([\pL\pN_., \t]+)`)
	aFrom    = regexp.MustCompile(`\bfrom[ \t]+(\.*)[ \t]*([\pL\pN_.]*)[ \t]*import[ \t]*(\([^)]*\)|[^\n]*)`)
	aName    = regexp.MustCompile(`[\pL\pN_]+`)
)

// mentions are the files, by their paths below the program's directory, that one of its
// modules may import.
func mentions(file, code string) (files []string) {
	code = strings.NewReplacer("\\\r\n", " ", "\\\n", " ").Replace(code)
	for _, found := range anImport.FindAllStringSubmatch(code, -1) {
		for one := range strings.SplitSeq(found[1], ",") {
			if words := strings.Fields(one); len(words) > 0 { // before "as"
				files = append(files, filesOf("", words[0])...)
			}
		}
	}
	for _, found := range aFrom.FindAllStringSubmatch(code, -1) {
		dots, module, names := found[1], found[2], found[3]
		base := ""
		if dots != "" {
			base = path.Join(path.Dir(file), strings.Repeat("../", len(dots)-1))
			if base == ".." || strings.HasPrefix(base, "../") {
				continue
			}
		}
		files = append(files, filesOf(base, module)...)
		for _, name := range aName.FindAllString(names, -1) {
			files = append(files, filesOf(path.Join(base, strings.ReplaceAll(module, ".", "/")), name)...)
		}
	}
	return files
}

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
