package deno

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// script is a cell as it is evaluated, or why it can't be had.
type script struct {
	Code string `json:"code"`
	// Map is a source map, where the code is not the cell's own.
	Map     string `json:"map,omitempty"`
	Problem string `json:"problem,omitempty"`
}

const tooHardToTranspile = "the program is nested too deep, or takes too long to compile"

// asScript rewrites a cell's module syntax and, with transpile, makes plain
// JavaScript of it, which has to be where leaving its types out is not enough: JSX,
// enums, decorators. jsx is the package that makes elements of JSX.
func asScript(code, extension, jsx string, transpile bool) script {
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
		return script{Problem: text}
	}
	var sourceMap struct{ Mappings string }
	if err := json.Unmarshal(result.Map, &sourceMap); err != nil {
		return script{Problem: err.Error()}
	}
	s := script{Code: code}
	if transpile {
		s = script{Code: string(result.Code), Map: string(result.Map)}
	}
	decorated := false
	s.Code, decorated = withoutModuleSyntax(s.Code, string(result.Code), sourceMappings(sourceMap.Mappings))
	if decorated && !transpile {
		return asScript(code, extension, jsx, true)
	}
	return s
}

var undeclaredExport = pattern(`^"(.+)" is not declared in this file$`)

// undeclaredExports are the names in errors that say so, with commas; empty when
// there is another error.
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
