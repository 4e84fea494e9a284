package wasm

import "rillbox/supervisor/job"

var r = language{
	LanguageInfo: job.LanguageInfo{
		Name: "r", Title: "R", Aliases: []string{"rscript", "rlang"}, Extensions: []string{".r"},
		How:    how,
		Banner: "R ${r}", Prompt: "> ", More: "+ ", Exits: []string{"q()", "quit()"},
	},
	version:    "4.6",
	guest:      "r",
	parts:      []string{"webr"},
	keepsState: true,
}
