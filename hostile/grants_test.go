//go:build !windows

package hostile

import (
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

// TestGrants asks for more than was granted in words that look like less, and
// names what was denied in another way.
func TestGrants(t *testing.T) {
	t.Parallel()
	var rows []attack
	for _, language := range []struct {
		name              job.Language
		fetch, read, send string
	}{
		{job.JavaScript, `console.log(await (await fetch("URL")).text());`, `console.log(Deno.readTextFileSync("FILE"));`, `(await Deno.connect({ hostname: "HOST", port: %HTTPPORT% })).close();`},
		{job.TypeScript, `const answer: string = await (await fetch("URL")).text(); console.log(answer);`, `const text: string = Deno.readTextFileSync("FILE"); console.log(text);`, `const c: Deno.Conn = await Deno.connect({ hostname: "HOST", port: %HTTPPORT% }); c.close();`},
		{job.Python, "import js\nprint(await (await js.fetch('URL')).text())", runJS + "\nprint(run_js('(f) => Deno.readTextFileSync(f)')('FILE'))", runJS + "\nawait run_js('(hostname) => Deno.connect({ hostname, port: %HTTPPORT% })')('HOST')"},
	} {
		add := func(name, code string, grants, narrowed []string) {
			rows = append(rows, attack{name: string(language.name) + ": " + name, language: language.name, code: code, grants: grants, narrowed: narrowed})
		}
		fetch := func(host string) string {
			return strings.ReplaceAll(language.fetch, "URL", "http://"+host+":%HTTPPORT%/")
		}
		for _, host := range []string{"0.0.0.0", "0", "[::ffff:0.0.0.0]", "localhost"} {
			add("fetch of "+host+" with loopback denied", fetch(host), []string{"--allow-net", "--deny-net=127.0.0.1"}, nil)
		}
		for _, host := range []string{"0.0.0.0", "0", "::ffff:0.0.0.0"} {
			add("connect to "+host+" with loopback denied", strings.ReplaceAll(language.send, "HOST", host), []string{"--allow-net", "--deny-net=127.0.0.1"}, nil)
		}
		add("an address before a zone that looks like the granted host", fetch("127.0.0.1"), []string{"--allow-net=*.example.com"}, []string{"--allow-net=127.0.0.1%x.example.com"})
		add("an address with a port before such a zone", fetch("127.0.0.1"), []string{"--allow-net=*.example.com:%HTTPPORT%"}, []string{"--allow-net=127.0.0.1%x.example.com:%HTTPPORT%"})
		add("a name that was denied, with a port", strings.ReplaceAll(language.send, "HOST", "0.0.0.0"), []string{"--allow-net", "--deny-net=127.0.0.1"}, []string{"--allow-net=0.0.0.0:%HTTPPORT%"})
		add("a file of a directory that was denied", strings.ReplaceAll(language.read, "FILE", "%DIR%/secret.txt"), []string{"--allow-read", "--deny-read=%DIR%"}, []string{"--allow-read=%DIR%/secret.txt"})
	}
	rows = append(rows,
		attack{name: "import from an address before a zone that looks like the granted host", code: `import "http://%HTTP%/x.js";`,
			grants: []string{"--allow-import=*.example.com"}, narrowed: []string{"--allow-import=127.0.0.1%x.example.com"}},
		attack{name: "run of a program whose name was denied", code: `console.log(new TextDecoder().decode(new Deno.Command("/bin/cat", { args: ["%DIR%/secret.txt"] }).outputSync().stdout));`,
			grants: []string{"--allow-run", "--deny-run=cat"}, narrowed: []string{"--allow-run=/bin/cat"}},
	)
	try(t, rows)
}
