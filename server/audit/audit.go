// Package audit writes one JSON line for each tool call that has ended: who asked for
// what, and how it went; nothing of code, input, environment and output.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"rillbox/server"
)

// Log is an audit log in a file.
type Log struct {
	path string
	log  *slog.Logger // of faults
	now  func() time.Time

	mu     sync.Mutex
	file   *os.File // nil while it can't be opened
	torn   bool     // its last line is not whole
	lost   int      // lines that were not written since it was last told
	told   time.Time
	closed bool
}

// tellTime is how often it is told that lines are lost.
const tellTime = time.Minute

// line is one of the file's.
type line struct {
	Time        time.Time `json:"time"` // when the call came
	Identity    string    `json:"identity"`
	Session     string    `json:"session,omitempty"` // of the protocol's
	Request     string    `json:"request,omitempty"` // ID of the HTTP request
	Tool        string    `json:"tool"`
	Status      string    `json:"status"`
	Language    string    `json:"language,omitempty"`
	Packages    []string  `json:"packages,omitempty"`   // that were named
	Permissions *[]string `json:"permissions,omitzero"` // that were named; absent for all that are granted
	Execution   string    `json:"execution,omitempty"`
	TookMS      int64     `json:"took_ms"`
	WaitedMS    int64     `json:"waited_ms"`
	InstallMS   int64     `json:"install_ms"`
	RunMS       int64     `json:"run_ms"`
	BytesIn     int64     `json:"bytes_in"`
	BytesOut    int64     `json:"bytes_out"`
}

// Open opens the log, whose file is made where there is none, for its owner alone. One
// that can't be written to later is told of, and no reason to stop serving.
func Open(path string, log *slog.Logger) (*Log, error) {
	l := &Log{path: path, log: log, now: time.Now}
	return l, l.open()
}

// Reopen opens the file again by its name, which another may have now.
func (l *Log) Reopen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.close()
	if err := l.open(); err != nil {
		l.told = l.now()
		l.log.Error("the audit log can't be written: calls are served without it", "file", l.path, "err", err)
	}
}

// open opens the file. The caller holds mu.
func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600) // a pipe without a reader is no reason to wait
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() { // its reader could have us wait
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file = file
	return nil
}

// close closes the file. The caller holds mu.
func (l *Log) close() {
	if l.file != nil {
		_ = l.file.Close() // each line was written by itself
		l.file = nil
	}
}

// Close ends the log.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.close()
}

// Ended writes a line. One that can't be written is lost; that it is, is told.
func (l *Log) Ended(r server.Record) {
	of := line{
		Time: r.Began.UTC(), Identity: r.Client, Session: r.Session, Request: r.Request,
		Tool: r.Tool, Status: r.Status, Language: string(r.Language), Packages: r.Packages, Execution: r.Execution,
		TookMS: r.Took.Milliseconds(), WaitedMS: r.Waited.Milliseconds(), InstallMS: r.Installing.Milliseconds(), RunMS: r.Duration.Milliseconds(),
		BytesIn: r.In, BytesOut: r.Out,
	}
	if r.Permissions != nil {
		of.Permissions = &r.Permissions
	}
	text, err := json.Marshal(of)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if err == nil {
		err = l.write(append(text, '\n'))
	}
	if err == nil {
		if l.lost > 0 {
			l.log.Warn("the audit log is written again", "file", l.path, "lost", l.lost)
			l.lost = 0
		}
		return
	}
	l.lost++
	if now := l.now(); now.Sub(l.told) >= tellTime {
		l.log.Error("the audit log can't be written: calls are served without it", "file", l.path, "lost", l.lost, "err", err)
		l.told, l.lost = now, 0
	}
}

// write appends a line. The caller holds mu.
func (l *Log) write(text []byte) error {
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	if l.torn { // so that the next one can be read
		text = append([]byte{'\n'}, text...)
	}
	n, err := l.file.Write(text)
	if n > 0 {
		l.torn = n < len(text)
	}
	if err != nil {
		l.close() // it may be another when it is opened again
		return fmt.Errorf("append a line: %w", err)
	}
	return nil
}
