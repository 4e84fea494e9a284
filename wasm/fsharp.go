package wasm

import "rillbox/supervisor/job"

var fsharp = language{
	LanguageInfo: job.LanguageInfo{
		Name: "fsharp", Title: "F#", Aliases: []string{"f#", "fs", "fsx", "fable"},
		Extensions: []string{".fsx", ".fs"}, Interpreters: []string{"fsi"},
	},
	version:       "3.8.0",
	compiler:      "fsharp",
	compilerFlags: []string{"--stack-size=4000"},
	sources:       []string{".fsx", ".fs"},
	translates:    true,
	parts:         []string{"fable-standalone", "fable-metadata"},
}
