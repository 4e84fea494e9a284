package wasm

import "rillbox/supervisor/job"

var perl = language{
	LanguageInfo: job.LanguageInfo{
		Name: "perl", Title: "Perl", Aliases: []string{"perl5", "pl"}, Extensions: []string{".pl", ".pm"},
		Banner: "Perl ${perl}", Prompt: "> ", More: ". ", Exits: []string{"exit"},
	},
	version:    "5.42.0",
	guest:      "perl",
	parts:      []string{"@6over3/zeroperl-ts"},
	keepsState: true,
}
