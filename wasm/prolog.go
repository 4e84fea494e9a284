package wasm

import "rillbox/supervisor/job"

var prolog = language{
	LanguageInfo: job.LanguageInfo{
		Name: "prolog", Title: "Prolog", Aliases: []string{"swipl", "swi-prolog"}, Extensions: []string{".pro", ".prolog", ".plt"},
		Banner: "SWI-Prolog ${prolog}", Prompt: "?- ", More: "|    ", Exits: []string{"halt."},
	},
	version:    "10.1.10",
	guest:      "prolog",
	parts:      []string{"swipl-wasm"},
	heap:       18 << 20,
	keepsState: true,
}
