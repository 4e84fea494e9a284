package deno

import (
	"os"
	"path/filepath"

	"rillbox/supervisor/launcher"
)

// Wall is the second wall for a child with these permissions, which reads
// readOnly and changes own beside. It is nil where the permissions leave nothing
// to hold: all of them, or those to start programs or load native code.
func (p Permissions) Wall(readOnly, own []string) *launcher.Wall {
	runAll, runs := p.Allowed("run")
	ffiAll, libraries := p.Allowed("ffi")
	if p.all || runAll || ffiAll || len(runs) > 0 || len(libraries) > 0 {
		return nil
	}
	w := &launcher.Wall{ReadOnly: readOnly, ReadWrite: own}
	all, reads := p.Allowed("read")
	if all {
		reads = []string{"/"}
	}
	w.ReadOnly = append(w.ReadOnly, reads...)
	all, writes := p.Allowed("write")
	if all {
		writes = []string{"/"}
	}
	for _, path := range writes {
		w.WriteOnly = append(w.WriteOnly, existing(path))
	}
	all, hosts := p.Allowed("net")
	w.AnyNetwork = all || len(hosts) > 0
	return w
}

// existing is the nearest directory or file that is there: a file can be made
// only where its directory may be changed.
func existing(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil {
			return path
		}
		path = filepath.Dir(path)
	}
}
