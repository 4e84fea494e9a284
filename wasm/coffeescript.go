package wasm

import "rillbox/supervisor/job"

var coffeescript = language{
	LanguageInfo: job.LanguageInfo{
		Name: "coffeescript", Title: "CoffeeScript", Aliases: []string{"coffee", "coffee-script"}, Extensions: []string{".coffee", ".litcoffee"},
		Banner: "CoffeeScript ${coffeescript}", Prompt: "coffee> ", More: "......> ", Exits: []string{"exit()", "quit()", "process.exit()"},
	},
	version:    "2.7.0",
	compiler:   "coffee",
	sources:    []string{".coffee", ".litcoffee"},
	translates: true,
	parts:      []string{"coffeescript"},
	keepsState: true,
}
