package modules

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Script is a cell as it is evaluated, or the problem that esbuild has with it.
type Script struct {
	Code string `json:"code"`
	// Map is a source map; empty for code with the cell's own lines and columns.
	Map     string `json:"map,omitempty"`
	Problem string `json:"problem,omitempty"`
}

const tooHardToTranspile = "the program is nested too deep, or takes too long to compile"

// asScript rewrites a cell's module syntax. With transpile, or where the cell has
// decorators, it also makes plain JavaScript of it: leaving the types out is not enough
// for JSX, enums and decorators. jsx is the package that makes JSX elements.
func asScript(code, extension, jsx string, transpile bool) Script {
	options := api.TransformOptions{
		Loader:        loaders[extension],
		Sourcemap:     api.SourceMapExternal,
		Sourcefile:    "cell",
		Charset:       api.CharsetUTF8,
		LegalComments: api.LegalCommentsNone,
		LogLevel:      api.LogLevelSilent,
		TsconfigRaw:   `{"compilerOptions":{"verbatimModuleSyntax":true}}`,
		JSX:           api.JSXAutomatic, JSXImportSource: jsx,
	}
	if transpile {
		options.Supported = map[string]bool{"decorators": false} // V8 has the rest
	}
	if ownPragma().MatchString(code) {
		options.JSX = api.JSXTransform // the program says itself what makes its elements
	}
	result := api.Transform(code, options)
	if names := undeclaredExports(result.Errors); names != "" && !transpile { // an earlier cell may have declared them
		result = api.Transform(code+"\nlet "+names+";", options)
	}
	if len(result.Errors) > 0 {
		first := result.Errors[0]
		text := first.Text
		if first.Location != nil {
			text = fmt.Sprintf("%s at cell:%d:%d", text, first.Location.Line, first.Location.Column+1)
		}
		return Script{Problem: text}
	}
	var sourceMap struct{ Mappings string }
	if err := json.Unmarshal(result.Map, &sourceMap); err != nil {
		return Script{Problem: err.Error()}
	}
	s := Script{Code: code}
	if transpile {
		s = Script{Code: string(result.Code), Map: string(result.Map)}
	}
	decorated := false
	s.Code, decorated = withoutModuleSyntax(s.Code, string(result.Code), sourceMap.Mappings)
	if decorated && !transpile {
		return asScript(code, extension, jsx, true)
	}
	return s
}

var undeclaredExport = Pattern(`^"(.+)" is not declared in this file$`)

// undeclaredExports lists the undeclared names that are exported, with commas; it is
// empty if there is another error.
func undeclaredExports(errors []api.Message) string {
	var names []string
	for _, e := range errors {
		m := undeclaredExport().FindStringSubmatch(e.Text)
		if m == nil {
			return ""
		}
		names = append(names, m[1])
	}
	return strings.Join(names, ", ")
}
