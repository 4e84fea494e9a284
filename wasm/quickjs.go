package wasm

import "rillbox/supervisor/job"

var quickjs = language{
	LanguageInfo: job.LanguageInfo{
		Name: "quickjs", Title: "QuickJS", Aliases: []string{"qjs"}, Extensions: []string{".qjs"},
		Banner: "QuickJS ${quickjs}", Prompt: "> ", More: "  ", Exits: []string{"exit()", "quit()"},
	},
	version:    "2025-09-13",
	guest:      "quickjs",
	flags:      []string{"--stack-size=4000"},
	parts:      []string{"@jitl/quickjs-wasmfile-release-sync"},
	keepsState: true,
}
