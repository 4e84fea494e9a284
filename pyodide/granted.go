//go:build !windows

package pyodide

import (
	"fmt"
	"slices"
	"strings"

	"rillbox/deno/permission"
)

// ownFiles are where Python's tree of files has what is Python's own, or the
// workspace; see TestGrantedPathsHideNothing.
var ownFiles = []string{"/dev", "/home/pyodide", pythonLibrary, strings.ReplaceAll(pythonLibrary, ".", "") + ".zip", "/proc", "/usr/lib", "/workspace"}

// pythonLibrary is where Python has its modules.
var pythonLibrary = "/lib/python" + PythonVersion[:strings.LastIndex(PythonVersion, ".")]

// grantedPaths are the paths of the machine's that permissions name, of which Python
// has what is there at the same place in its tree; what is within another one comes
// with that. Of a grant of everything it sees nothing: its tree has other things by
// the names that the machine's top directories have; unseen says that there is one.
func grantedPaths(p permission.Permissions) (paths []string, unseen bool, err error) {
	readsAll, reads := p.Allowed("read")
	writesAll, writes := p.Allowed("write")
	unseen = readsAll || writesAll
	for i, path := range append(reads, writes...) {
		for _, own := range ownFiles {
			if path != "/" && (permission.Within(own, path) || permission.Within(path, own)) {
				flag := "read"
				if i >= len(reads) {
					flag = "write"
				}
				return nil, false, fmt.Errorf("--allow-%s=%s: Python has files of its own in %s, which those of the machine would hide: grant another path, such as one directory within, or move the files", flag, path, own)
			}
		}
		if path == "/" {
			unseen = true
		} else {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(a+"/", b+"/") })
	outer := ""
	paths = slices.DeleteFunc(paths, func(path string) bool {
		if outer != "" && permission.Within(path, outer) {
			return true
		}
		outer = path
		return false
	})
	return paths, unseen, nil
}
