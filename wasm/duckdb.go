package wasm

import "rillbox/supervisor/job"

var duckdb = language{
	LanguageInfo: job.LanguageInfo{
		Name: "duckdb", Title: "DuckDB", Aliases: []string{"duck"}, Extensions: []string{".duck"},
		Banner: "DuckDB ${duckdb}", Prompt: "D ", More: "· ", Exits: []string{".exit", ".quit"},
	},
	version:    "1.4.3",
	guest:      "duckdb",
	parts:      []string{"@duckdb/duckdb-wasm", "apache-arrow"},
	keepsState: true,
}
