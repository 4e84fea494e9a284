package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// onePixelHigh is a picture of a guest's, w pixels wide, as PNG in base64.
func onePixelHigh(t *testing.T, w int) string {
	t.Helper()
	picture := image.NewRGBA(image.Rect(0, 0, w, 1))
	for x := range w {
		picture.Set(x, 0, color.RGBA{byte(x), 0, 200, 255})
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// Each terminal gets a picture as it can show it, which is the guest's pixels
// and not its bytes, and no wider than it is.
func TestPicturesAreDrawnWhereTheyCanBe(t *testing.T) {
	needRuntimes(t)
	inKitty := regexp.MustCompile("\x1b_G(?:[^;]*,)?q=2,[^;]*;([^;\x1b]+)\x1b\\\\")
	inITerm := regexp.MustCompile("\x1b]1337;File=inline=1;size=[0-9]+;width=[0-9]+px:([^\a]+)\a")
	inSixels := regexp.MustCompile("\x1bP[0-9;]*q([^\x1b]+)\x1b\\\\")
	for name, row := range map[string]struct {
		env    []string
		answer string // to what a terminal is asked, whether it knows sixels
		want   *regexp.Regexp
	}{
		"kitty":               {[]string{"TERM=xterm-kitty"}, "", inKitty},
		"a window of kitty's": {[]string{"TERM=xterm-256color", "KITTY_WINDOW_ID=1"}, "", inKitty},
		"Ghostty":             {[]string{"TERM=xterm-256color", "TERM_PROGRAM=ghostty"}, "", inKitty},
		"iTerm2":              {[]string{"TERM=xterm-256color", "TERM_PROGRAM=iTerm.app"}, "", inITerm},
		"iTerm2, by SSH":      {[]string{"TERM=xterm-256color", "LC_TERMINAL=iTerm2"}, "", inITerm},
		"sixels":              {[]string{"TERM=xterm-256color"}, "\x1b[?62;4;22c", inSixels},
		"sixels in tmux":      {[]string{"TERM=tmux-256color", "KITTY_WINDOW_ID=1"}, "\x1b[?1;2;4c", inSixels},
		"no sixels":           {[]string{"TERM=xterm-256color"}, "\x1b[?62;22c", nil},
		"dumb":                {[]string{"TERM=dumb", "KITTY_WINDOW_ID=1"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			code := fmt.Sprintf("console.log('first');\nawait display({'image/png': %q}, {raw: true});", onePixelHigh(t, 1600))
			if err := os.WriteFile(filepath.Join(dir, "plot.js"), []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			p := sit(t, dir, append(row.env, "NO_COLOR=1"), "run", "plot.js")
			if row.answer != "" {
				p.answers("\x1b[c", row.answer)
			}
			p.sees("first\n")
			p.sees("picture: plot-1.png\n")
			if status := p.leaves(); status != 0 {
				t.Errorf("the exit status is %d", status)
			}
			kept, err := os.ReadFile(filepath.Join(dir, "plot-1.png"))
			if err != nil || base64.StdEncoding.EncodeToString(kept) != onePixelHigh(t, 1600) {
				t.Errorf("the file is not what the program showed (%v)", err)
			}
			seen := p.all()
			if row.want == nil {
				if strings.Contains(seen, "\x1b_G") || strings.Contains(seen, "\x1b]1337") || strings.Contains(seen, "\x1bP") {
					t.Errorf("a terminal that can draw nothing gets %q", seen)
				}
				return
			}
			drawn := row.want.FindStringSubmatch(seen)
			if drawn == nil {
				t.Fatalf("nothing is drawn: %q", seen)
			}
			if row.want == inSixels {
				if !regexp.MustCompile(`^"1;1;800;`).MatchString(drawn[1]) {
					t.Errorf("the sixels are not 800 wide: %.50q", drawn[1])
				}
				return
			}
			file, err := base64.StdEncoding.DecodeString(drawn[1])
			if err != nil {
				t.Fatal(err)
			}
			picture, err := png.Decode(bytes.NewReader(file))
			if err != nil || picture.Bounds().Dx() != 800 {
				t.Errorf("what is drawn is %v (%v), want it as wide as the terminal, 800", picture.Bounds(), err)
			}
		})
	}
}

// In a REPL, what was drawn need not be kept; what was not is kept beside what
// is there.
func TestAReplKeepsPicturesThatItCantDraw(t *testing.T) {
	needRuntimes(t)
	code := fmt.Sprintf("display({'image/png': '%s'}, {raw: true})\n", onePixelHigh(t, 3))
	for terminal, row := range map[string]struct {
		prompt string
		files  int
	}{"xterm-kitty": {"> ", 1}, "dumb": {"", 3}} {
		t.Run(terminal, func(t *testing.T) {
			dir := t.TempDir()
			mine := filepath.Join(dir, "display-1.png")
			if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			p := sit(t, dir, []string{"TERM=" + terminal, "NO_COLOR=1"}, "repl", "-l", "js")
			p.sees(row.prompt)
			for range 2 {
				p.types(code)
				p.sees("\nPromise { undefined }\n" + row.prompt) // before it, Ctrl-D is not the editor's
			}
			p.types(ctrlD)
			p.leaves()
			list, err := filepath.Glob(filepath.Join(dir, "display-*.png"))
			if content, _ := os.ReadFile(mine); err != nil || len(list) != row.files || string(content) != "mine" {
				t.Errorf("there are %q (%v), want %d files and mine unchanged\n%s", list, err, row.files, p.all())
			}
		})
	}
}
