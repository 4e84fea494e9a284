package workspace

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// types are by the name's ending. The table is our own because the standard
// library's depends on what else is installed on a machine.
var types = map[string]string{
	".arrow":   "application/vnd.apache.arrow.file",
	".avif":    "image/avif",
	".bmp":     "image/bmp",
	".cjs":     "text/javascript",
	".css":     "text/css",
	".csv":     "text/csv",
	".db":      "application/vnd.sqlite3",
	".docx":    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".feather": "application/vnd.apache.arrow.file",
	".gif":     "image/gif",
	".gz":      "application/gzip",
	".htm":     "text/html",
	".html":    "text/html",
	".ipynb":   "application/x-ipynb+json",
	".jpeg":    "image/jpeg",
	".jpg":     "image/jpeg",
	".js":      "text/javascript",
	".json":    "application/json",
	".jsonl":   "application/jsonl",
	".jsx":     "text/jsx",
	".log":     "text/plain",
	".md":      "text/markdown",
	".mjs":     "text/javascript",
	".mp3":     "audio/mpeg",
	".mp4":     "video/mp4",
	".ndjson":  "application/x-ndjson",
	".parquet": "application/vnd.apache.parquet",
	".pdf":     "application/pdf",
	".png":     "image/png",
	".pptx":    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".py":      "text/x-python",
	".sql":     "application/sql",
	".sqlite":  "application/vnd.sqlite3",
	".svg":     "image/svg+xml",
	".tar":     "application/x-tar",
	".tif":     "image/tiff",
	".tiff":    "image/tiff",
	".toml":    "application/toml",
	".ts":      "text/typescript",
	".tsv":     "text/tab-separated-values",
	".tsx":     "text/tsx",
	".txt":     "text/plain",
	".wasm":    "application/wasm",
	".wav":     "audio/wav",
	".webm":    "video/webm",
	".webp":    "image/webp",
	".xlsx":    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".xml":     "application/xml",
	".yaml":    "application/yaml",
	".yml":     "application/yaml",
	".zip":     "application/zip",
}

// typeOf is the MIME type of a name's ending, or "".
func typeOf(name string) string { return types[strings.ToLower(path.Ext(name))] }

// isText says whether part of a file is UTF-8 without NUL characters. Where the
// part was cut off, a character that the cut runs through does not count.
func isText(part []byte, cutBefore, cutAfter bool) bool {
	for i := 0; cutBefore && i < utf8.UTFMax-1 && len(part) > 0 && !utf8.RuneStart(part[0]); i++ {
		part = part[1:]
	}
	for n := 1; cutAfter && n < utf8.UTFMax && n <= len(part); n++ {
		if tail := part[len(part)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				part = part[:len(part)-n]
			}
			break
		}
	}
	return bytes.IndexByte(part, 0) < 0 && utf8.Valid(part)
}
