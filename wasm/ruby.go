package wasm

import "rillbox/supervisor/job"

var ruby = language{
	LanguageInfo: job.LanguageInfo{
		Name: "ruby", Title: "Ruby", Aliases: []string{"irb"}, Extensions: []string{".rb"},
		Banner: "Ruby ${ruby}", Prompt: "irb> ", More: "irb* ", Exits: []string{"exit", "quit"},
	},
	version:    "3.4.1",
	guest:      "ruby",
	parts:      []string{"@ruby/3.4-wasm-wasi"},
	keepsState: true,
}
