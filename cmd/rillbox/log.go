//go:build !windows

package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/rs/zerolog"

	"rillbox/cmd/rillbox/terminal"
)

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
	if !server || terminal.Is(os.Stderr) {
		console := zerolog.ConsoleWriter{Out: os.Stderr, NoColor: !terminal.Colours(os.Stderr), TimeFormat: time.TimeOnly}
		if !server {
			console.PartsExclude = []string{zerolog.TimestampFieldName}
		}
		out = console
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(out).Level(level)))
}
