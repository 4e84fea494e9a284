package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// The files of a client's workspaces are MCP resources. None is registered with the SDK:
// they are looked up for each list, read and completion.
const (
	filesTemplate = filesPrefix + "{session_id}/files/{+path}"
	filesPrefix   = "rillbox://sessions/"
)

const (
	// maxResource is the largest file that is read as a resource, in bytes; these
	// have no offset.
	maxResource = 16 << 20
	// resourcePage is how many resources a page of a list has.
	resourcePage = 500
)

func (s *Server) addTemplate(e *mcp.Server) {
	e.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: filesTemplate,
		Name:        "files",
		Title:       "Workspace files",
		Description: "The files of a session's workspace, by the session's id and their path.",
	}, s.readResource)
}

// fileURI is the URI of a file's resource.
func fileURI(session, name string) string {
	var uri strings.Builder
	uri.WriteString(filesPrefix + url.PathEscape(session) + "/files")
	for part := range strings.SplitSeq(name, "/") {
		uri.WriteString("/" + url.PathEscape(part))
	}
	return uri.String()
}

// parseFileURI reverses fileURI. It does not check the path: the workspace does.
func parseFileURI(uri string) (session, name string, ok bool) {
	rest, ok := strings.CutPrefix(uri, filesPrefix)
	session, name, found := strings.Cut(rest, "/files/")
	if !ok || !found {
		return "", "", false
	}
	session, err := url.PathUnescape(session)
	if err != nil {
		return "", "", false
	}
	name, err = url.PathUnescape(name)
	return session, name, err == nil && session != "" && name != ""
}

func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	contents := &mcp.ResourceContents{URI: req.Params.URI}
	res := &mcp.ReadResourceResult{Cacheable: mcp.Cacheable{CacheScope: "private"}, Contents: []*mcp.ResourceContents{contents}}
	if text, ok := s.outputs.read(clientOf(ctx), req.Params.URI); ok {
		contents.MIMEType, contents.Text = "text/plain", text
		return res, nil
	}
	session, name, _ := parseFileURI(req.Params.URI) // one that is, by resourceURI
	dir, err := s.workspaces.Workspace(ctx, clientOf(ctx), session)
	if err != nil {
		return nil, noResource(req.Params.URI, err.Error())
	}
	file, err := dir.Read(name, 0, maxResource)
	switch {
	case err != nil:
		return nil, noResource(req.Params.URI, err.Error())
	case file.Rest() > 0:
		return nil, noResource(req.Params.URI, fmt.Sprintf("%s has %d bytes, and a resource is %d at most: read_file gives parts of it",
			quote(file.Name), file.Size, maxResource))
	}
	contents.MIMEType = file.Type
	if file.Text && len(file.Data) > 0 { // an empty text would be left out of the answer
		contents.Text = string(file.Data)
	} else {
		contents.Blob = file.Data
	}
	return res, nil
}

// noResource is the error for a resource that can't be read.
func noResource(uri, why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("no resource %s: %s", quote(uri), job.ShowText(why))}
}

// resourceURI checks the URI of a resource that a client reads, and gives it in the
// form that its template matches: for one that it does not know, the SDK makes an
// error that is no JSON when the URI has control characters, and ends the connection.
func (s *Server) resourceURI(client, uri string) (string, error) {
	if _, ok := s.outputs.read(client, uri); ok {
		return uri, nil
	}
	session, name, ok := parseFileURI(uri)
	if !ok {
		return "", noResource(uri, "it is no file ("+filesTemplate+"), and no output ("+outputsTemplate+") that is still kept")
	}
	return fileURI(session, name), nil
}

// ownResources gives a page of a client's files: its cursor is the URI after
// which the next begins. A workspace that ends meanwhile has none.
func (s *Server) ownResources(client string, req *mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	var after []byte
	if req.Params != nil {
		var err error
		if after, err = base64.RawURLEncoding.DecodeString(req.Params.Cursor); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is none of this server's: begin without one"}
		}
	}
	res := &mcp.ListResourcesResult{Cacheable: mcp.Cacheable{CacheScope: "private"}, Resources: []*mcp.Resource{}}
	for session, dir := range s.workspaces.Workspaces(client) {
		found, err := dir.List("")
		if err != nil {
			continue
		}
		for _, f := range found.Files {
			if uri := fileURI(session, f.Name); f.Kind == workspace.Regular && uri > string(after) {
				res.Resources = append(res.Resources, &mcp.Resource{
					URI: uri, Name: job.ShowName(f.Name), Title: job.ShowName(path.Base(f.Name)), MIMEType: f.Type, Size: f.Size,
					Annotations: &mcp.Annotations{LastModified: f.Modified.UTC().Format(time.RFC3339)},
				})
			}
		}
	}
	slices.SortFunc(res.Resources, func(a, b *mcp.Resource) int { return cmp.Compare(a.URI, b.URI) })
	if len(res.Resources) > resourcePage {
		res.Resources = res.Resources[:resourcePage]
		res.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(res.Resources[resourcePage-1].URI))
	}
	return res, nil
}

// complete completes the template's variables from the client's own sessions
// and files.
func (s *Server) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	var values []string
	ref, name, given := req.Params.Ref, req.Params.Argument.Name, req.Params.Context
	own := s.workspaces.Workspaces(clientOf(ctx))
	switch {
	case ref.Type != "ref/resource" || ref.URI != filesTemplate:
	case name == "session_id":
		values = slices.Sorted(maps.Keys(own))
	case name == "path" && given != nil && own[given.Arguments["session_id"]] != nil:
		found, err := own[given.Arguments["session_id"]].List("")
		if err != nil {
			break // the session has ended meanwhile
		}
		for _, f := range found.Files {
			if job.ShowName(f.Name) == f.Name { // others can't be shown as what they are
				values = append(values, f.Name)
			}
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, req.Params.Argument.Value) })
	const most = 100 // the protocol's
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{
		Values: append([]string{}, values[:min(len(values), most)]...), Total: len(values), HasMore: len(values) > most,
	}}, nil
}

// filesChanged tells a client that its list of resources has changed: the SDK does,
// some milliseconds later and once for several changes.
func (s *Server) filesChanged(client string) {
	s.connections.Range(func(e, of any) bool {
		if of == client {
			s.addTemplate(e.(*mcp.Server)) // the same again, which counts as a change
		}
		return true
	})
}
