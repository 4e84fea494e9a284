//go:build !windows

package launcher

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// The keeper is one process beside each server. The server tells it of each
// child's process group and directory, and that they are gone; when the server
// itself is gone, however it ended, the keeper's standard input ends, and it
// kills the groups and removes the directories that are left.
//
// Its input is lines: "+ PGID DIRECTORY" and "- PGID". The directory may be
// empty and may hold any byte but a newline.

// KeepLine tells a keeper of a child.
func KeepLine(pgid int, directory string) string {
	return fmt.Sprintf("+ %d %s\n", pgid, directory)
}

// ReleaseLine tells a keeper that a child is gone.
func ReleaseLine(pgid int) string { return fmt.Sprintf("- %d\n", pgid) }

func keep(input io.Reader) {
	kept := map[int]string{}
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		sign, rest, _ := strings.Cut(lines.Text(), " ")
		number, directory, _ := strings.Cut(rest, " ")
		pgid, err := strconv.Atoi(number)
		if err != nil || pgid <= 1 {
			continue // never signal everything or ourselves over a torn line
		}
		if sign == "+" {
			kept[pgid] = directory
		} else {
			delete(kept, pgid)
		}
	}
	for pgid := range kept {
		_ = syscall.Kill(-pgid, syscall.SIGKILL) // ESRCH: it ended by itself
	}
	for _, directory := range kept {
		if directory != "" {
			_ = os.RemoveAll(directory) // what is left is removed by the next start
		}
	}
}
