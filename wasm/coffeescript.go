package wasm

import "rillbox/supervisor/job"

var coffeescript = language{
	LanguageInfo: job.LanguageInfo{
		Name: "coffeescript", Title: "CoffeeScript", Aliases: []string{"coffee"}, Extensions: []string{".coffee", ".litcoffee"},
		How:    how,
		Banner: "CoffeeScript ${coffeescript}", Prompt: "coffee> ", More: "  ", Exits: []string{"exit()", "quit()"},
	},
	version:    "2.7.0",
	compiler:   "coffee",
	translates: true,
	sources:    []string{".coffee", ".litcoffee", ".md"},
	parts:      []string{"coffeescript"},
}
