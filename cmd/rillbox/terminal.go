//go:build !windows

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

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
	return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// paint colours text where f shows colours.
func paint(f *os.File, colour, text string) string {
	if !colours(f) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
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
	if !server || term.IsTerminal(int(os.Stderr.Fd())) {
		console := zerolog.ConsoleWriter{Out: os.Stderr, NoColor: !colours(os.Stderr), TimeFormat: time.TimeOnly}
		if !server {
			console.PartsExclude = []string{zerolog.TimestampFieldName}
		}
		out = console
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(out).Level(level)))
}

// progress shows stages on stderr: a bar at a terminal, else one plain line for
// each stage. Its zero value shows nothing.
type progress struct {
	w     io.Writer
	bars  bool
	bar   *progressbar.ProgressBar
	shown string // the stage on display, or last printed
}

func (a *app) newProgress() *progress {
	if a.quiet {
		return &progress{}
	}
	return &progress{w: os.Stderr, bars: term.IsTerminal(int(os.Stderr.Fd()))}
}

// show displays a stage.
func (p *progress) show(e supervisor.Event) {
	switch {
	case p.w == nil || e.Text == "":
	case !p.bars:
		if e.Text != p.shown {
			p.shown = e.Text
			fmt.Fprintln(p.w, e.Text)
		}
	default:
		p.draw(e)
	}
}

func (p *progress) draw(e supervisor.Event) {
	total := e.Total
	if total <= 0 {
		total = -1 // a spinner
	}
	if e.Text != p.shown || p.bar == nil || (total > 0) != (p.bar.GetMax64() > 0) {
		p.clear()
		p.shown = e.Text
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription(e.Text),
			progressbar.OptionShowBytes(e.Total > 0),
			progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(65*time.Millisecond),
			progressbar.OptionSetRenderBlankState(true),
			progressbar.OptionClearOnFinish(),
		)
	}
	if total > 0 {
		_ = p.bar.Set64(min(e.Done, total)) // a bar that can't be drawn is no reason to stop
	}
}

// clear takes the bar away, so that something else can be written.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Exit() // see draw
		_ = p.bar.Clear()
		p.bar = nil
	}
}
