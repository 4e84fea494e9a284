package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// How many bytes read_file gives: of text, and of what is given as base64, when
// no limit is asked for, and at most. Base64 costs a model several times as much
// as text, and it can read little in it.
const (
	readText   = 64 << 10
	readBase64 = 8 << 10
	maxRead    = 1 << 20
)

// readOutput is read_file's structured result.
type readOutput struct {
	Path       string   `json:"path"`                  // The file's path in the workspace
	URI        string   `json:"uri"`                   // The file as an MCP resource
	SizeBytes  int64    `json:"size_bytes"`            // The size of the whole file
	MIMEType   string   `json:"mime_type"`             // What its name, or else its content, says that it is
	Encoding   string   `json:"encoding"`              // How the content is given: as text, as base64, or as an image, which stands beside this
	Content    string   `json:"content,omitempty"`     // The part of the file that was read; absent for an image
	Offset     int64    `json:"offset"`                // Where in the file the content begins, in bytes
	NextOffset *int64   `json:"next_offset,omitempty"` // The offset to go on with; absent when nothing is left
	Width      int      `json:"width,omitempty"`       // The width of the image, in pixels
	Height     int      `json:"height,omitempty"`      // The height of the image, in pixels
	Notes      []string `json:"notes,omitempty"`       // What is not as it is in the file
}

func (s *Server) readFile(ctx context.Context, _ *mcp.CallToolRequest, args readArgs) (*mcp.CallToolResult, error) {
	if err := args.check(); err != nil {
		return nil, err
	}
	dir, session, err := s.workspaceOf(ctx, args.SessionID)
	if err != nil {
		return nil, err
	}
	file, err := dir.Read(args.Path, args.Offset, valueOr(args.Limit, readText))
	switch {
	case err != nil:
		return nil, hinted(err)
	case args.Offset > file.Size:
		return nil, fmt.Errorf("offset %d is beyond the end of %s, which has %d bytes", args.Offset, quote(file.Name), file.Size)
	}
	out := readOutput{Path: file.Name, URI: fileURI(session, file.Name), SizeBytes: file.Size, MIMEType: file.Type, Offset: file.Offset}
	if args.Encoding == "" && args.Offset == 0 && args.Limit == nil && strings.HasPrefix(http.DetectContentType(file.Data), "image/") {
		pic, err := s.wholePicture(dir, file)
		if err == nil {
			out.Encoding, out.Width, out.Height = "image", pic.width, pic.height
			if pic.note != "" {
				out.Notes = append(out.Notes, "The image is "+pic.note+".")
			}
			return answer(out, out.text(), pic.content()), nil
		}
		out.Notes = append(out.Notes, fmt.Sprintf("It is not shown as a picture: %v.", err))
	}
	data := file.Data
	if args.Encoding == "text" || args.Encoding == "" && file.Text {
		if cut := partialRune(data); file.Rest() > 0 && cut < len(data) {
			data = data[:len(data)-cut]
		}
		var replaced int64
		out.Encoding = "text"
		if out.Content, replaced = utf8Text(data); replaced > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("%d bytes are not UTF-8; each is shown as \uFFFD.", replaced))
		}
	} else {
		data = data[:min(int64(len(data)), valueOr(args.Limit, readBase64))]
		out.Encoding, out.Content = "base64", base64.StdEncoding.EncodeToString(data)
	}
	if next := file.Offset + int64(len(data)); next < file.Size && len(data) > 0 {
		out.NextOffset = &next
	}
	return answer(out, out.text()), nil
}

// wholePicture reads all of a file that begins like a picture.
func (s *Server) wholePicture(dir *workspace.Dir, begin workspace.Content) (picture, error) {
	if begin.Size > maxScaleBytes {
		return picture{}, fmt.Errorf("it has more than %s", size(maxScaleBytes))
	}
	whole, err := dir.Read(begin.Name, 0, maxScaleBytes)
	if err != nil {
		return picture{}, err
	}
	return s.pictures.fit(whole.Data)
}

// text says first what is given, on a line of its own, then the content.
func (o readOutput) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s", job.ShowName(o.Path), o.MIMEType, size(o.SizeBytes))
	switch {
	case o.Encoding == "image":
		fmt.Fprintf(&b, ", an image of %d × %d pixels", o.Width, o.Height)
	case o.NextOffset != nil:
		fmt.Fprintf(&b, "; bytes %d to %d of %d, %d are left: go on with offset %d", o.Offset, *o.NextOffset-1, o.SizeBytes, o.SizeBytes-*o.NextOffset, *o.NextOffset)
	case o.Offset > 0:
		fmt.Fprintf(&b, "; from byte %d on, to the end", o.Offset)
	}
	if o.Encoding == "base64" {
		b.WriteString("; as base64")
	}
	for _, note := range o.Notes {
		b.WriteString("\nnote: " + job.ShowLine(note, maxNote))
	}
	b.WriteString("\n")
	if o.Encoding != "image" {
		b.WriteString("\n" + o.Content)
	}
	return b.String()
}
