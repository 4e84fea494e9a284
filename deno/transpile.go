package deno

import (
	"fmt"

	"github.com/evanw/esbuild/pkg/api"
)

// lowered is a program as plain JavaScript, with a source map, or why it can't
// be had. A session's cell is lowered where leaving its types out is not enough:
// JSX, enums, decorators.
type lowered struct {
	Code    string `json:"code"`
	Map     string `json:"map"`
	Problem string `json:"problem"`
}

const tooHardToLower = "the program is nested too deep, or takes too long to compile"

// lower compiles a program; jsx is the package that makes elements of JSX.
func lower(code, extension, jsx string) lowered {
	options := api.TransformOptions{
		Loader:      loaders[extension],
		Target:      api.ES2024,
		Sourcemap:   api.SourceMapExternal,
		Sourcefile:  "cell",
		LogLevel:    api.LogLevelSilent,
		TsconfigRaw: `{"compilerOptions":{"verbatimModuleSyntax":true}}`,
		JSX:         api.JSXAutomatic, JSXImportSource: jsx,
	}
	if ownPragma().MatchString(code) {
		options.JSX = api.JSXTransform // the program says itself what makes its elements
	}
	result := api.Transform(code, options)
	if len(result.Errors) > 0 {
		first := result.Errors[0]
		text := first.Text
		if first.Location != nil {
			text = fmt.Sprintf("%s at cell:%d:%d", text, first.Location.Line, first.Location.Column+1)
		}
		return lowered{Problem: text}
	}
	return lowered{Code: string(result.Code), Map: string(result.Map)}
}
