package wasm

import "rillbox/supervisor/job"

var sql = language{
	LanguageInfo: job.LanguageInfo{
		Name: "sql", Title: "SQL", Aliases: []string{"sqlite", "sqlite3"}, Extensions: []string{".sql"},
		Banner: "SQLite ${sql}", Prompt: "sqlite> ", More: "   ...> ", Exits: []string{".exit", ".quit"},
	},
	version:    "3.54.1",
	guest:      "sqlite",
	parts:      []string{"@sqlite.org/sqlite-wasm"},
	keepsState: true,
}
