//go:build !windows

package hostile

import "testing"

func TestImportsOfLocalFiles(t *testing.T) {
	try(t, []attack{
		{name: "static import as code", code: `import s from "file://%DIR%/secret.mjs"; console.log(s);`},
	})
}
