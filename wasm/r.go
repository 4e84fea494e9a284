package wasm

import "rillbox/supervisor/job"

var r = language{
	LanguageInfo: job.LanguageInfo{
		Name: "r", Title: "R", Aliases: []string{"rscript", "rlang"}, Extensions: []string{".r"},
		Banner: "R ${r}", Prompt: "> ", More: "+ ", Exits: []string{"q()", "quit()"},
	},
	version: "4.6.0",
	guest:   "r",
	parts:   []string{"webr"},
	// R calls as deep as its own limits say. One compiler takes 180 MB where two take 450.
	flags:      []string{"--stack-size=4000", "--liftoff-only"},
	keepsState: true,
}
