// Command rillbox needs a Unix system; on Windows it says so.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "rillbox does not run on Windows itself. Run it in WSL: install WSL with `wsl --install`, then build and start rillbox in its Linux.")
	os.Exit(1)
}
