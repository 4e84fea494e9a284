package server

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/workspace"
)

// displayInfo is one thing that a program showed, in structured form: its texts
// by MIME type, and the types of what is content of its own (a picture).
type displayInfo struct {
	Text  map[string]string `json:"text,omitempty" jsonschema:"Its texts by MIME type (text/plain, text/html, text/markdown, image/svg+xml, application/json)."`
	Types []string          `json:"types,omitempty" jsonschema:"MIME types of its pictures, which are content of their own."`
}

// maxDisplayText is how many bytes of one text of a display are given, and how
// many of its plain form stand in the answer's text.
const maxDisplayText = 256 << 10

// pictureTypes are the forms of a picture that models see, the best first.
var pictureTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// show makes content of what a program showed: pictures as images, scaled down
// where they are too large; drawings (SVG) as resources; the rest as text. A
// picture that can't be shown becomes a file of the workspace, if there is one.
func (s *Server) show(out *runOutput, displays []supervisor.Display, files *workspace.Dir) (content []mcp.Content) {
	for i, display := range displays {
		var info displayInfo
		for _, mime := range slices.Sorted(maps.Keys(display)) {
			if slices.Contains(pictureTypes, mime) || !isText(mime) {
				info.Types = append(info.Types, valid(mime))
				continue
			}
			if info.Text == nil {
				info.Text = map[string]string{}
			}
			text := valid(display[mime])
			if len(text) > maxDisplayText {
				out.Notes = append(out.Notes, fmt.Sprintf("Display %d: its %s has %s and is left out.", i+1, valid(mime), size(int64(len(text)))))
				continue
			}
			info.Text[valid(mime)] = text
		}
		out.Displays = append(out.Displays, info)
		picture, note := s.picture(i+1, display, files)
		if note != "" {
			out.Notes = append(out.Notes, note)
		}
		switch svg := info.Text["image/svg+xml"]; {
		case picture != nil:
			content = append(content, picture)
		case svg != "":
			content = append(content, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
				URI: fmt.Sprintf("rillbox://executions/%s/display-%d.svg", out.ExecutionID, i+1), MIMEType: "image/svg+xml", Text: svg,
			}})
		}
	}
	return content
}

func isText(mime string) bool {
	return strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "+xml") || strings.HasSuffix(mime, "json")
}

// picture is the best picture of a display, or nil and why there is none.
func (s *Server) picture(number int, display supervisor.Display, files *workspace.Dir) (content mcp.Content, note string) {
	for _, mime := range pictureTypes {
		encoded, ok := display[mime]
		if !ok {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
		if err != nil {
			return nil, fmt.Sprintf("Display %d: its %s is not base64.", number, mime)
		}
		fitting, err := s.pictures.fit(data)
		if err == nil {
			if fitting.note != "" {
				note = fmt.Sprintf("Display %d is %s.", number, fitting.note)
			}
			return fitting.content(), note
		}
		note = fmt.Sprintf("Display %d can't be shown: %v.", number, err)
		if files == nil || err == errNoPicture {
			return nil, note
		}
		name := fmt.Sprintf("display-%d.%s", number, strings.TrimPrefix(mime, "image/"))
		if _, err := files.Write(name, data); err != nil {
			return nil, note + fmt.Sprintf(" It can't be kept as a file either: %v.", err)
		}
		return nil, note + fmt.Sprintf(" It is the file %s.", name)
	}
	return nil, ""
}

// plain is a display as text, for those who see no pictures.
func (d displayInfo) plain(number int) string {
	for _, mime := range []string{"text/plain", "text/markdown", "application/json", "text/html"} {
		if text := d.Text[mime]; text != "" {
			return text
		}
	}
	types := append(slices.Sorted(maps.Keys(d.Text)), d.Types...)
	return fmt.Sprintf("(display %d: %s)", number, strings.Join(types, ", "))
}
