package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/workspace"
)

// sharing is the directory that one run shares with its client: its session's
// workspace, the operator's own directory, or one of its own when files came
// with it. The zero value is none.
type sharing struct {
	files   *workspace.Dir
	remove  func()
	changes workspace.Changes // that the run made
	err     error             // why they can't be told
}

// share prepares what a run shares. When it is the run's turn, the files that came
// with it are written; when it has ended, its changes are noted.
func (s *Server) share(ctx context.Context, p *supervisor.Program, session string, given fileArgs) (sh *sharing, err error) {
	contents, err := given.bytes()
	if err != nil {
		return nil, err
	}
	sh = &sharing{}
	switch {
	case session != "":
		sh.files, err = s.supervisor.Workspace(ctx, p.Client, session)
	case given != nil || s.supervisor.Shared() != nil:
		p.Workspace, sh.files, sh.remove, err = s.supervisor.NewWorkspace()
	default:
		return sh, nil
	}
	if err != nil {
		return nil, err
	}
	p.ReadOnly = sh.files.Options().ReadOnly
	var before workspace.Snapshot
	p.Before = func() (err error) {
		if len(contents) > 0 {
			if err := sh.files.WriteAll(contents); err != nil {
				return err
			}
		}
		before, err = sh.files.Snapshot()
		return err
	}
	p.After = func() { sh.changes, sh.err = sh.files.Changes(before) }
	return sh, nil
}

// add makes one more file, named display-1 or the next number that is free.
func (sh *sharing) add(data []byte, media string) (name string, err error) {
	file, err := sh.files.WriteNew("display-", extensionOf(media), data)
	if err == nil {
		sh.changes.Created = append(sh.changes.Created, file)
	}
	return file.Name, err
}

// extensionOf is the ending of a file's name for a MIME type.
func extensionOf(media string) string {
	_, ending, _ := strings.Cut(media, "/")
	known := map[string]string{"svg+xml": "svg", "markdown": "md", "plain": "txt", "jpeg": "jpg"}
	if short, ok := known[ending]; ok {
		ending = short
	}
	if i := strings.IndexFunc(ending, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }); i >= 0 {
		ending = ending[:i]
	}
	if ending == "" {
		return ""
	}
	return "." + ending[:min(len(ending), 10)]
}

// done gives back what share prepared.
func (sh *sharing) done() {
	if sh.remove != nil {
		sh.remove()
	}
}

// maxFilesTold is how many files that a run made or changed its answer tells of.
const maxFilesTold = 100

// maxFilesBack is how many bytes of files a run without a session gives back.
const maxFilesBack = 1 << 20

// tellFiles adds the files that the run made or changed: those of a session as links
// to read them by, others with their content, as far as there is room.
func (s *Server) tellFiles(sh *sharing, out *runOutput, client, session string) []mcp.Content {
	if sh.files == nil {
		return nil
	}
	changes := sh.changes
	if sh.err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("What the run changed in its files can't be told: %v.", sh.err))
		return nil
	}
	created := map[string]bool{}
	for _, f := range changes.Created {
		created[f.Name] = true
	}
	files := changes.Files()
	if more := len(files) - maxFilesTold; more > 0 {
		files = files[:maxFilesTold]
		out.Notes = append(out.Notes, fmt.Sprintf("%d more files that it made or changed are not told of; list_files lists those of a session.", more))
	}
	for _, f := range files {
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
		return fileLinks(session, files)
	}
	got, left := sh.files.Collect(files, maxFilesBack)
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
		out.Notes = append(out.Notes, fmt.Sprintf("not given back, for want of room: %s (%s in all); write less, or use a session, whose files can be read in parts.", several(int64(len(left)), "file"), size(maxFilesBack)))
	}
	return nil
}
