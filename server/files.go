package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// workspaces finds the workspaces of clients' sessions; what it finds is always
// the client's own. Its errors are written for the client, and say the same of a
// session that is another's as of one that never was.
type workspaces interface {
	// EnsureSession makes a session of the handle supervisor.DefaultHandle, or of one
	// that the client chose, if there is none, and says whether it did.
	EnsureSession(client, session string) (made bool, err error)
	// Workspace finds the workspace of a session.
	Workspace(ctx context.Context, client, session string) (*workspace.Dir, error)
	// Workspaces are all that the client has, by their sessions' handles.
	Workspaces(client string) map[string]*workspace.Dir
}

// addFileTools registers the tools for files, in an order that a model reads
// them in.
func (s *Server) addFileTools() {
	read := schemaFor[readArgs]()
	read.Properties["encoding"].Enum = []any{"text", "base64"}
	read.Properties["offset"].Minimum = new(0.0)
	read.Properties["limit"].Minimum = new(1.0)
	read.Properties["limit"].Maximum = new(float64(maxRead))
	given := outputFor[readOutput]()
	given.Properties["encoding"].Enum = []any{"text", "base64", "image"}
	addTool[readArgs, readOutput](s, &mcp.Tool{
		Name:  "read_file",
		Title: "Read a file",
		Description: "Reads a file of a session's workspace: text as it is, a PNG, JPEG, GIF or WebP as an image, other bytes as base64. " +
			fmt.Sprintf("Without limit the first %s of text, or %s of other bytes, with the file's size and where to go on. ", size(readText), size(readBase64)) +
			"For looking: to work with data, open the file in run_code. Paths: data/in.csv, or /workspace/data/in.csv.",
		Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false)},
		InputSchema:  read,
		OutputSchema: given,
	}, s.readFile)

	write := schemaFor[writeArgs]()
	delete(write.Properties, "text")
	addTool[writeArgs, writeOutput](s, &mcp.Tool{
		Name:  "write_file",
		Title: "Write a file",
		Description: "Makes or replaces a file, and the folders that it needs, in a session's workspace: the current directory of its programs. " +
			"For input, and modules to import; to change part of a file, open it in run_code. It is written as a whole or not at all.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)},
		InputSchema: write,
	}, s.writeFile)

	addTool[listArgs, listOutput](s, &mcp.Tool{
		Name:        "list_files",
		Title:       "List files",
		Description: fmt.Sprintf("Lists up to %d files of a session's workspace with sizes, times and types, and how much room is left. To find a path: what a run made is in its answer, and read_file shows what is in one.", maxListed),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false)},
	}, s.listFiles)

	addTool[deleteArgs, deleteOutput](s, &mcp.Tool{
		Name:        "delete_file",
		Title:       "Delete a file",
		Description: "Deletes a file, a link or an empty folder of a session's workspace, for good. To make room, or against a mistake; all at once, reset_session.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)},
	}, s.deleteFile)
}

type writeOutput struct {
	Path      string `json:"path"`       // The file's path in the workspace
	URI       string `json:"uri"`        // The file as an MCP resource
	SizeBytes int64  `json:"size_bytes"` // Its size
	Created   bool   `json:"created"`    // True when there was no such file before
}

func (s *Server) writeFile(ctx context.Context, req *mcp.CallToolRequest, args writeArgs) (*mcp.CallToolResult, error) {
	data, err := args.content()
	if err != nil {
		return nil, err
	}
	client := clientOf(ctx)
	session, err := handleOf(ctx, cmp.Or(args.SessionID, supervisor.DefaultHandle))
	if err != nil {
		return nil, err
	}
	made, err := s.workspaces.EnsureSession(client, session)
	if err != nil {
		return nil, err
	}
	dir, err := s.workspaces.Workspace(ctx, client, session)
	if err != nil {
		return nil, err
	}
	written, err := dir.Write(args.Path, data)
	if err != nil {
		return nil, err
	}
	s.filesChanged(client)
	out := writeOutput{Path: written.Name, URI: fileURI(session, written.Name), SizeBytes: int64(len(data)), Created: written.Created}
	did := "replaced"
	if out.Created {
		did = "wrote"
	}
	into := ""
	if made {
		into = "; " + isNew(session)
	}
	if made && args.SessionID == "" { // else a run without a session may look for it
		into += ", which run_code has with session_id " + session
	}
	return answer(out, fmt.Sprintf("%s %s (%s)%s", did, job.ShowName(out.Path), size(out.SizeBytes), into)), nil
}

// workspaceOf is the workspace of the session that a call names, or of the default one.
func (s *Server) workspaceOf(ctx context.Context, named string) (dir *workspace.Dir, session string, err error) {
	if session, err = handleOf(ctx, cmp.Or(named, supervisor.DefaultHandle)); err != nil {
		return nil, "", err
	}
	dir, err = s.workspaces.Workspace(ctx, clientOf(ctx), session)
	return dir, session, err
}

// maxListed is how many files list_files lists.
const maxListed = 1000

type listOutput struct {
	Files     []fileInfo `json:"files"`               // What was found, sorted by path
	Matched   int        `json:"matched"`             // How many there are, those that are not listed included
	UsedBytes int64      `json:"used_bytes"`          // What all files of the workspace have
	UsedFiles int64      `json:"used_files"`          // How many files and folders it has
	MaxBytes  int64      `json:"max_bytes,omitempty"` // What it may have at most; absent when there is no limit
	MaxFiles  int64      `json:"max_files,omitempty"` // How many files and folders it may have; absent when there is no limit
	ReadOnly  bool       `json:"read_only,omitempty"` // True when nothing in it can be written
	Notes     []string   `json:"notes,omitempty"`     // What is not listed, and why
}

// fileInfo tells of a file.
type fileInfo struct {
	Path      string         `json:"path"`                // Its path in the workspace
	Kind      workspace.Kind `json:"kind"`                // What it is
	SizeBytes int64          `json:"size_bytes"`          // Its size; 0 but for files
	Modified  string         `json:"modified"`            // When it was last changed, RFC 3339 in UTC
	MIMEType  string         `json:"mime_type,omitempty"` // What its name says that it is; absent when it says nothing
}

func (s *Server) listFiles(ctx context.Context, req *mcp.CallToolRequest, args listArgs) (*mcp.CallToolResult, error) {
	dir, _, err := s.workspaceOf(ctx, args.SessionID)
	if err != nil {
		return nil, err
	}
	found, err := dir.List(args.Glob)
	if err != nil {
		return nil, err
	}
	used, err := dir.Usage()
	if err != nil {
		return nil, err
	}
	o := dir.Options()
	out := listOutput{
		Files: []fileInfo{}, Matched: len(found.Files),
		UsedBytes: used.Bytes, UsedFiles: used.Files, MaxBytes: o.Bytes, MaxFiles: o.Files, ReadOnly: o.ReadOnly,
	}
	for _, f := range found.Files[:min(len(found.Files), maxListed)] {
		out.Files = append(out.Files, fileInfo{f.Name, f.Kind, f.Size, f.Modified.UTC().Format(time.RFC3339), f.Type})
	}
	if more := out.Matched - len(out.Files); more > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d more are not listed: narrow the glob.", more))
	}
	if found.Incomplete || used.More {
		out.Notes = append(out.Notes, "The workspace holds more than was looked at: too many files, folders that nest too deep, or some that cannot be read.")
	}
	if found.Unnamed > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d names are not UTF-8 and cannot be told; a program can rename them.", found.Unnamed))
	}
	return answer(out, out.text()), nil
}

func (o listOutput) text() string {
	var b strings.Builder
	for _, f := range o.Files {
		switch f.Kind {
		case workspace.Regular:
			fmt.Fprintf(&b, "%s  %s  %s  %s\n", job.ShowName(f.Path), size(f.SizeBytes), f.Modified, f.MIMEType)
		case workspace.Folder:
			fmt.Fprintf(&b, "%s/\n", job.ShowName(f.Path))
		default:
			fmt.Fprintf(&b, "%s  (%s)\n", job.ShowName(f.Path), f.Kind)
		}
	}
	if len(o.Files) == 0 {
		b.WriteString("nothing found\n")
	}
	fmt.Fprintf(&b, "\n%d found; the workspace has %d files and folders", o.Matched, o.UsedFiles)
	if o.MaxFiles > 0 {
		fmt.Fprintf(&b, " of %d", o.MaxFiles)
	}
	fmt.Fprintf(&b, ", %s", size(o.UsedBytes))
	if o.MaxBytes > 0 {
		fmt.Fprintf(&b, " of %s", size(o.MaxBytes))
	}
	if o.ReadOnly {
		b.WriteString(", and is read-only")
	}
	b.WriteString("\n")
	for _, note := range o.Notes {
		fmt.Fprintf(&b, "note: %s\n", job.ShowLine(note, maxNote))
	}
	return b.String()
}

type deleteOutput struct {
	Path    string `json:"path"`    // What was asked for
	Deleted bool   `json:"deleted"` // True when it is gone
}

func (s *Server) deleteFile(ctx context.Context, req *mcp.CallToolRequest, args deleteArgs) (*mcp.CallToolResult, error) {
	client := clientOf(ctx)
	dir, _, err := s.workspaceOf(ctx, args.SessionID)
	if err != nil {
		return nil, err
	}
	if err := dir.Delete(args.Path, args.Recursive); err != nil {
		return nil, hinted(err)
	}
	s.filesChanged(client)
	return answer(deleteOutput{Path: args.Path, Deleted: true}, "deleted "+job.ShowName(args.Path)), nil
}

// hinted adds to the error for a missing file how to find those that exist.
func hinted(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: list_files shows what is", err)
	}
	return err
}
