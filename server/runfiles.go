package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/workspace"
	"rillbox/workspace/manifest"
)

// runFiles is the directory that one run shares with its client: its session's
// workspace, the operator's own directory, or one of its own when files came
// with it. The zero value is none.
type runFiles struct {
	dir     *workspace.Dir
	remove  func()
	notes   []string          // what of the manifests among them is not honoured
	changes workspace.Changes // that the run made
	err     error             // why they can't be told
}

// share prepares what a run shares. When it is the run's turn, the files that came
// with it are written; when it has ended, its changes are noted.
func (s *Server) share(ctx context.Context, p *job.Program, c *supervisor.Call, given fileArgs) (*runFiles, error) {
	contents, err := given.bytes()
	if err != nil {
		return nil, err
	}
	r := &runFiles{remove: func() {}}
	if c.Session == "" { // a session's cells share more than one call's files
		if p.Manifest, r.notes, err = manifest.Read(manifest.Files(contents), "main", p.Code, p.Language); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Session != "":
		r.dir, err = s.o.Supervisor.Workspace(ctx, c.Client, c.Session)
	case given != nil || s.o.Supervisor.Shared() != nil:
		p.Workspace, r.dir, r.remove, err = s.o.Supervisor.NewWorkspace()
	default:
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	p.ReadOnly = r.dir.Options().ReadOnly
	var before workspace.Snapshot
	c.Begin = func() (err error) {
		if len(contents) > 0 {
			if err := r.dir.WriteAll(contents); err != nil {
				return err
			}
		}
		before, err = r.dir.Snapshot()
		return err
	}
	c.End = func() { r.changes, r.err = r.dir.Changes(before) }
	return r, nil
}

// add makes one more file, named display-1 or the next number that is free.
func (r *runFiles) add(data []byte, media string) (name string, err error) {
	file, err := r.dir.WriteNew("display-", extensionOf(media), data)
	if err == nil {
		r.changes.Created = append(r.changes.Created, file)
	}
	return file.Name, err
}

var notInExtensions = regexp.MustCompile(`[^a-z0-9].*`)

// extensionOf is the ending of a file's name for a MIME type.
func extensionOf(media string) string {
	_, ending, _ := strings.Cut(media, "/")
	known := map[string]string{"svg+xml": "svg", "markdown": "md", "plain": "txt", "jpeg": "jpg"}
	ending = cmp.Or(known[ending], notInExtensions.ReplaceAllString(ending, ""))
	if ending == "" {
		return ""
	}
	return "." + ending[:min(len(ending), 10)]
}

const (
	// maxFilesTold is how many files that a run made or changed its answer tells of.
	maxFilesTold = 100
	// maxLinks is how many of a session's files it links to.
	maxLinks = 32
	// maxFilesBack is how many bytes of files a run without a session gives back.
	maxFilesBack = 1 << 20
)

// tellFiles adds the files that the run made or changed: those of a session as links
// to read them by, others with their content, as far as there is room.
func (s *Server) tellFiles(r *runFiles, out *runOutput, client, session string) (content []mcp.Content) {
	if r.dir == nil {
		return nil
	}
	if r.err != nil {
		out.note("What the run changed in its files can't be told: %v.", r.err)
		return nil
	}
	files := r.changes.Files()
	if more := len(files) - maxFilesTold; more > 0 {
		files = files[:maxFilesTold]
		out.note("%d more files that it made or changed are not told of; list_files lists those of a session.", more)
	}
	if r.changes.Incomplete {
		out.note("There are more files than were looked at.")
	}
	contents := map[string]workspace.Content{}
	if session == "" {
		got, left := r.dir.Collect(files, maxFilesBack)
		for _, c := range got {
			contents[c.Name] = c
		}
		if len(left) > 0 {
			out.note("not given back, for want of room: %s (%s in all); write less, or use a session, whose files can be read in parts.", several(int64(len(left)), "file"), size(maxFilesBack))
		}
	}
	for _, f := range files {
		file := changedFile{Path: f.Name, SizeBytes: f.Size, MIMEType: f.Type, Change: "changed"}
		if slices.Contains(r.changes.Created, f) {
			file.Change = "created"
		}
		switch c, ok := contents[f.Name]; {
		case session != "":
			file.URI = fileURI(session, f.Name)
			if len(content) < maxLinks {
				content = append(content, &mcp.ResourceLink{
					URI: file.URI, Name: job.ShowName(f.Name), Title: job.ShowName(path.Base(f.Name)), MIMEType: f.Type, Size: &f.Size,
				})
			}
		case ok && c.Text:
			file.Text = string(c.Data)
		case ok:
			file.Base64 = base64.StdEncoding.EncodeToString(c.Data)
		}
		out.Files = append(out.Files, file)
	}
	if session != "" && r.changes.Any() {
		s.filesChanged(client)
	}
	return content
}
