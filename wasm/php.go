package wasm

import "rillbox/supervisor/job"

var php = language{
	LanguageInfo: job.LanguageInfo{
		Name: "php", Title: "PHP", Aliases: []string{"php-cgi", "php-cli"}, Extensions: []string{".php", ".phtml"},
		Banner: "PHP ${php}", Prompt: "php > ", More: "php * ", Exits: []string{"exit", "quit"},
	},
	version:    "8.4.25",
	guest:      "php",
	parts:      []string{"@php-wasm/web-8-4"},
	heap:       64 << 20,
	keepsState: true,
}
