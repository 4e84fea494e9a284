package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
)

// displayInfo is one display of a program: its texts by MIME type, and the types of
// its other forms.
type displayInfo struct {
	Text map[string]string `json:"text,omitempty"` // Its texts by MIME type (text/plain, text/html, text/markdown, image/svg+xml, application/json)
	// isResult says that its plain text is the result, and is not given again.
	isResult bool
	Types    []string `json:"types,omitempty"` // MIME types of its other forms. A picture is content of its own; what is not shown is told of in notes
}

// pictureTypes are the forms of a picture that models see, the best first.
var pictureTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// addDisplays adds what a program displayed to its answer: pictures as images, scaled
// down where they are too large; drawings (SVG) as resources; the rest as text. What
// can't be displayed becomes a file of the workspace, if there is one, with a note.
// Texts beyond most bytes in all are left out.
func (s *Server) addDisplays(out *runOutput, displays []job.Display, files *runFiles, most int) (content []mcp.Content) {
	var result string
	if json.Unmarshal(out.Result, &result) != nil {
		result = ""
	}
	for i, display := range displays {
		info := displayInfo{Text: map[string]string{}}
		picture := s.picture(out, i+1, display, files)
		for _, media := range slices.Sorted(maps.Keys(display)) {
			switch text := display[media]; {
			case slices.Contains(pictureTypes, media):
				info.Types = append(info.Types, media)
			case !isText(media):
				info.Types = append(info.Types, media)
				if picture != nil {
					continue
				}
				if data, ok := decode64(out, i+1, media, display[media]); ok {
					keep(out, i+1, media, data, files, "is no form that is shown")
				}
			case media == "text/plain" && text == result && text != "":
				info.isResult = true
			case len(text) > most:
				keep(out, i+1, media, []byte(text), files, fmt.Sprintf("has %s and is left out", size(int64(len(text)))))
			default:
				most -= len(text)
				info.Text[media] = text
			}
		}
		out.Displays = append(out.Displays, info)
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

// picture is the best picture of a display, nil when there is none that can be shown.
func (s *Server) picture(out *runOutput, number int, display job.Display, files *runFiles) mcp.Content {
	for _, media := range pictureTypes {
		encoded, ok := display[media]
		if !ok {
			continue
		}
		data, ok := decode64(out, number, media, encoded)
		if !ok {
			return nil
		}
		fitting, err := s.pictures.fit(data)
		if err != nil {
			keep(out, number, media, data, files, fmt.Sprintf("can't be shown: %v", err))
			return nil
		}
		if fitting.note != "" {
			out.note("Display %d is %s.", number, fitting.note)
		}
		return fitting.content()
	}
	return nil
}

// decode64 gives the bytes of one form of a display, or notes why there are none.
func decode64(out *runOutput, number int, media, text string) (data []byte, ok bool) {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		out.note("Display %d: its %s is not base64.", number, job.ShowName(media))
	}
	return data, err == nil
}

// keep saves one form of a display as a file under a free name, and notes that, or why
// there is none.
func keep(out *runOutput, number int, media string, data []byte, files *runFiles, why string) {
	note := fmt.Sprintf("Display %d: its %s %s", number, job.ShowName(media), why)
	if files.dir == nil {
		note += "; a session, or files given with the run, would keep it as a file."
	} else if file, err := files.add(data, media); err != nil {
		note += fmt.Sprintf(", and can't be kept as a file: %v.", err)
	} else {
		note += fmt.Sprintf("; it is the file %s.", file)
	}
	out.Notes = append(out.Notes, note)
}

// plain is a display as text, for those who see no pictures.
func (d displayInfo) plain(number int) string {
	for _, mime := range []string{"text/plain", "text/markdown", "application/json", "text/html"} {
		text, is := d.Text[mime]
		if text != "" {
			return text
		}
		if is {
			break // it was printed as well
		}
	}
	types := slices.DeleteFunc(slices.Sorted(maps.Keys(d.Text)), func(media string) bool { return d.Text[media] == "" })
	types = append(types, d.Types...)
	for i, media := range types {
		types[i] = job.ShowName(media)
	}
	return fmt.Sprintf("(display %d: %s)", number, strings.Join(types, ", "))
}
