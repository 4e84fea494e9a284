//go:build !windows

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"rillbox/supervisor"
)

// Colours, as terminals number them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// colours says whether f shows colours: a terminal, and nobody asked for none.
func colours(f *os.File) bool {
	return isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// paint colours text where f shows colours.
func paint(f *os.File, colour, text string) string {
	if !colours(f) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// note tells something on stderr that is no error, unless nobody wants to know.
func (a *app) note(text string) {
	if !a.quiet {
		fmt.Fprintln(os.Stderr, paint(os.Stderr, yellow, "note:"), supervisor.ShowLine(text, maxNote))
	}
}

// newLogger logs to stderr: lines for people, or JSON lines where a server's
// stderr is not a terminal.
func (a *app) newLogger(server bool) *slog.Logger {
	level, err := zerolog.ParseLevel(a.config.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // the setting admits known levels only
	}
	if !server && a.config.from("log_level") == "default" {
		level = zerolog.WarnLevel
	}
	if a.quiet {
		level = zerolog.ErrorLevel
	}
	var out io.Writer = os.Stderr
	if !server || isTerminal(os.Stderr) {
		console := zerolog.ConsoleWriter{Out: os.Stderr, NoColor: !colours(os.Stderr), TimeFormat: time.TimeOnly}
		if !server {
			console.PartsExclude = []string{zerolog.TimestampFieldName}
		}
		out = console
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(out).Level(level)))
}

// patience is how long a stage without a download lasts before it is shown: most
// are over sooner, and would only clutter a program's output.
const patience = time.Second

// How many bytes are shown of a stage, and of a note.
const maxStage, maxNote = 300, 2 << 10

// progress shows stages on stderr: a bar at a terminal, else one plain line for
// each stage. Its zero value shows nothing.
type progress struct {
	w    io.Writer
	bars bool

	mu    sync.Mutex
	stage string // the latest
	told  bool   // it is on display, or was printed
	late  *time.Timer
	bar   *progressbar.ProgressBar
	drawn *window // what the bar writes to
}

func (a *app) newProgress() *progress {
	if a.quiet {
		return &progress{}
	}
	return &progress{w: os.Stderr, bars: isTerminal(os.Stderr)}
}

// show displays a stage: a download at once, anything else if it takes long.
func (p *progress) show(e supervisor.Event) {
	if p.w == nil || e.Text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Text != p.stage {
		p.hide()
		p.stage, p.told = e.Text, false
	}
	switch {
	case e.Done > 0 || e.Total > 0:
		p.tell(e)
	case !p.told && p.late == nil:
		p.late = time.AfterFunc(patience, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.late != nil && p.stage == e.Text {
				p.tell(e)
			}
		})
	}
}

// tell displays a stage now, or moves its bar. The caller holds mu.
func (p *progress) tell(e supervisor.Event) {
	if !p.bars {
		if !p.told {
			fmt.Fprintln(p.w, supervisor.ShowLine(e.Text, maxStage))
		}
		p.told = true
		return
	}
	total := e.Total
	if total <= 0 {
		total = -1 // a spinner
	}
	if p.bar == nil || total != p.bar.GetMax64() {
		p.hide()
		p.drawn = &window{w: p.w}
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.drawn),
			progressbar.OptionSetDescription(supervisor.ShowLine(e.Text, maxStage)),
			progressbar.OptionShowBytes(e.Done > 0 || e.Total > 0),
			progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(65*time.Millisecond),
			progressbar.OptionSetRenderBlankState(true),
			progressbar.OptionClearOnFinish(),
		)
	}
	p.told = true
	if e.Done > 0 {
		_ = p.bar.Set64(e.Done) // a bar that can't be drawn is no reason to stop
	}
}

// clear takes away what is on display, so that something else can be written.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hide()
}

// hide takes the bar away and ends the wait for a stage. The caller holds mu.
func (p *progress) hide() {
	if p.late != nil {
		p.late.Stop()
		p.late = nil
	}
	if p.bar != nil {
		p.drawn.shut()
		_ = p.bar.Finish() // so that it ends; nobody sees how
		p.bar = nil
	}
}

// window is what a bar writes to until it is shut: a spinner goes on after its end.
type window struct {
	mu    sync.Mutex
	w     io.Writer
	width int // the most that was written at once
}

func (w *window) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.w == nil {
		return len(data), nil
	}
	w.width = max(w.width, utf8.RuneCount(data))
	return w.w.Write(data)
}

// shut takes away what is shown.
func (w *window) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = io.WriteString(w.w, "\r"+strings.Repeat(" ", w.width)+"\r") // see tell
	w.w = nil
}
