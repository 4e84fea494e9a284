package server

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/workspace"
)

// sharing is the directory that one run shares with its client: its session's
// workspace, the operator's own directory, or one of its own when files came
// with it. The zero value is none.
type sharing struct {
	files  *workspace.Dir
	before workspace.Snapshot
	remove func()
}

// share prepares what a run shares, and writes the files that came with it.
func (s *Server) share(ctx context.Context, p *supervisor.Program, session string, given fileArgs) (sh sharing, err error) {
	contents, err := given.bytes()
	if err != nil {
		return sh, err
	}
	defer func() {
		if err != nil {
			sh.done()
		}
	}()
	switch {
	case session != "":
		_, sh.files, err = s.supervisor.Workspace(ctx, p.Client, session)
	case given != nil || s.supervisor.Shared() != nil:
		p.Workspace, sh.files, sh.remove, err = s.supervisor.NewWorkspace()
	default:
		return sh, nil
	}
	if err != nil {
		return sh, err
	}
	p.ReadOnly = sh.files.Options().ReadOnly
	if len(contents) > 0 {
		if err := sh.files.WriteAll(contents); err != nil {
			return sh, err
		}
	}
	sh.before, err = sh.files.Snapshot()
	return sh, err
}

// done gives back what share prepared.
func (sh sharing) done() {
	if sh.remove != nil {
		sh.remove()
	}
}

// maxFilesBack is how many bytes of files a run without a session gives back.
const maxFilesBack = 1 << 20

// tellFiles adds the files that the run made or changed: those of a session as links
// to read them by, others with their content, as far as there is room.
func (s *Server) tellFiles(sh sharing, out *runOutput, client, session string) []mcp.Content {
	if sh.files == nil {
		return nil
	}
	changes, err := sh.files.Changes(sh.before)
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("What the run changed in its files can't be told: %v.", err))
		return nil
	}
	created := map[string]bool{}
	for _, f := range changes.Created {
		created[f.Name] = true
	}
	for _, f := range changes.Files() {
		change := "changed"
		if created[f.Name] {
			change = "created"
		}
		out.Files = append(out.Files, changedFile{Path: f.Name, SizeBytes: f.Size, MIMEType: f.Type, Change: change})
	}
	if changes.Incomplete {
		out.Notes = append(out.Notes, "There are more files than were looked at.")
	}
	if session != "" {
		for i := range out.Files {
			out.Files[i].URI = fileURI(session, out.Files[i].Path)
		}
		if changes.Any() {
			s.filesChanged(client)
		}
		return fileLinks(session, changes.Files())
	}
	got, left := sh.files.Collect(changes.Files(), maxFilesBack)
	contents := map[string]workspace.Content{}
	for _, c := range got {
		contents[c.Name] = c
	}
	for i, f := range out.Files {
		switch c, ok := contents[f.Path]; {
		case ok && c.Text:
			out.Files[i].Text = string(c.Data)
		case ok:
			out.Files[i].Base64 = base64.StdEncoding.EncodeToString(c.Data)
		}
	}
	if len(left) > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d files are too large to be given back (%s in all): write less, or use a session, whose files can be read in parts.", len(left), size(maxFilesBack)))
	}
	return nil
}
