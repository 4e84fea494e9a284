package wasm

import "rillbox/supervisor/job"

var scheme = language{
	LanguageInfo: job.LanguageInfo{
		Name: "scheme", Title: "Scheme", Aliases: []string{"scm", "r7rs", "guile", "biwascheme"},
		Extensions: []string{".scm", ".ss", ".sps"}, Interpreters: []string{"biwas"},
		Banner: "BiwaScheme ${scheme}", Prompt: "> ", More: "  ", Exits: []string{"(exit)", "exit", "quit"},
	},
	version:    "0.8.3",
	guest:      "scheme",
	flags:      []string{"--stack-size=4000"},
	parts:      []string{"biwascheme"},
	keepsState: true,
}
