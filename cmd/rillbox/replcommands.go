//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// What a person may type beside code, at a terminal only.
const replHelp = `.load FILE   run a file of yours here
.save FILE   write what ran without an error to a new file
.files       list the files that the session has
.reset       begin anew, with the files as they are
.exit        end, as Ctrl-D does
Tab completes names, Ctrl-C interrupts what runs and clears what is typed.
`

var commandPattern = regexp.MustCompile(`^\.[a-z]+(\s[^\n]*)?$`)

// isCommand says whether what was typed is for the REPL: no statement begins with
// a dot and a letter.
func isCommand(text string) bool { return commandPattern.MatchString(strings.TrimSpace(text)) }

// isExit says whether what was typed ends the REPLs that people know.
func (r *repl) isExit(text string) bool {
	return slices.Contains(r.language.Exits, strings.TrimRight(strings.TrimSpace(text), ";"))
}

// command does what a command says.
func (r *repl) command(ctx context.Context, text string) error {
	name, argument, _ := strings.Cut(text, " ")
	argument = strings.TrimSpace(argument)
	if needs := name == ".load" || name == ".save"; needs != (argument != "") {
		return fmt.Errorf("%s: .help shows how to use it", text)
	}
	switch name {
	case ".help":
		fmt.Print(replHelp)
	case ".load":
		code, err := os.ReadFile(argument)
		if err != nil {
			return err
		}
		return r.run(ctx, string(code), filepath.Base(argument))
	case ".save":
		return r.save(argument)
	case ".files":
		return r.listFiles(ctx)
	case ".reset":
		_, err := r.engines.ResetSession(ctx, "", r.id, supervisor.Reset{Variables: true})
		r.ran = nil
		return err
	default:
		if !r.isExit(text) && name != ".exit" {
			return fmt.Errorf("there is no command %s; .help lists those that there are", name)
		}
		r.status = nil
		return errEnded
	}
	return nil
}

func (r *repl) save(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(append(r.ran, ""), "\n"))
	return errors.Join(err, file.Close())
}

func (r *repl) listFiles(ctx context.Context) error {
	files, err := r.engines.Workspace(ctx, "", r.id)
	if err != nil {
		return err
	}
	list, err := files.List("")
	if err != nil {
		return err
	}
	for _, f := range list.Files {
		fmt.Printf("%10d  %s\n", f.Size, job.ShowName(f.Name))
	}
	if list.Incomplete {
		fmt.Println("and more")
	}
	return nil
}

// greet says what this is, and what it may.
func (r *repl) greet() {
	toolchain, ok := r.engines.Toolchain(r.language.Name)
	if !ok {
		return // cannot be: its session is open
	}
	d := toolchain.Describe()
	files := "the session's own, which end with it (--workspace DIR keeps them)"
	if shared := r.engines.shared; shared.Path != "" {
		files = shared.Path
		if shared.ReadOnly {
			files += ", to read only"
		}
	}
	fmt.Printf("%s\nfiles: %s\n", os.Expand(r.language.Banner, func(component string) string { return d.Versions[component] }), job.ShowText(files))
	if len(d.Permissions) > 0 {
		fmt.Printf("permissions: %s\n", strings.Join(d.Permissions, " "))
	}
	fmt.Println(".help lists the commands, Ctrl-D ends.")
}
