package wasm

import "rillbox/supervisor/job"

var bash = language{
	LanguageInfo: job.LanguageInfo{
		Name: "bash", Title: "bash", Aliases: []string{"sh", "shell", "shellscript", "zsh", "dash"}, Extensions: []string{".sh", ".bash"},
		Interpreters: []string{"ash", "ksh"},
		Banner:       "bash (our own, with programs of just-bash ${bash})", Prompt: "$ ", More: "> ", Exits: []string{"exit", "logout"},
	},
	version:    "3.4.2",
	guest:      "bash",
	parts:      []string{"just-bash"},
	keepsState: true,
	calls:      true,
}
