package workspace

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// A program may have so many files beside its own, of so many bytes together.
const (
	maxModules     = 1000
	maxModuleBytes = 16 << 20
)

// Modules reads the files that a program mentions, those that they mention, and so on,
// as far as they are there; `dir/*.x` mentions all that are so called (fs.Glob). A link
// that leads out of the directory is an error. name is the program's own file, which is
// none of them, code its text. mentions says what a file mentions, by paths from the
// directory.
func (d *Dir) Modules(name, code string, mentions func(file, code string) []string) (map[string][]byte, error) {
	files, left := map[string][]byte{}, int64(maxModuleBytes)
	looked := map[string]bool{name: true}
	for queue := mentions(name, code); len(queue) > 0; queue = queue[1:] {
		file := queue[0]
		if looked[file] {
			continue
		}
		looked[file] = true
		if strings.Contains(file, "*") {
			names, err := fs.Glob(d.root.FS(), file)
			if err != nil {
				return nil, err
			}
			queue = append(queue, names...)
			continue
		}
		info, err := d.root.Stat(file)
		switch {
		case err != nil && (leadsOut(err) || errors.Is(err, syscall.ELOOP)): // another of that name is not meant
			return nil, refuse("%s leads out of the program's directory through a symbolic link, which is not followed", quote(file))
		case err != nil, info.IsDir():
			continue // whoever imports it says that it is not there
		}
		content, err := d.Read(file, 0, left+1)
		if err != nil {
			return nil, err
		}
		switch left -= int64(len(content.Data)); {
		case left < 0:
			return nil, refuse("the program's modules have more than %d MiB in all: put data into files that it reads", maxModuleBytes>>20)
		case len(files) == maxModules:
			return nil, refuse("the program has more than %d modules beside its own file: bundle them", maxModules)
		}
		files[file] = content.Data
		queue = append(queue, mentions(file, string(content.Data))...)
	}
	return files, nil
}
