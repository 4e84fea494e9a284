package wasm

import "rillbox/supervisor/job"

var lua = language{
	LanguageInfo: job.LanguageInfo{
		Name: "lua", Title: "Lua", Aliases: []string{"luajit"}, Extensions: []string{".lua"},
		Banner: "Lua ${lua}", Prompt: "> ", More: ">> ", Exits: []string{"exit()", "quit()", "os.exit()"},
	},
	version:    "5.4",
	guest:      "lua",
	parts:      []string{"wasmoon"},
	heap:       16 << 20,
	keepsState: true,
}
