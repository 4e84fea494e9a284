//go:build !windows

package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"rillbox/supervisor"
)

// Patience is how long a stage without a download lasts before it is shown: most
// are over sooner, and would only clutter a program's output.
const Patience = time.Second

// maxStage is how many bytes are shown of a stage.
const maxStage = 300

// Progress shows stages on stderr: a bar at a terminal, else one plain line for
// each stage. Its zero value shows nothing.
type Progress struct {
	w    io.Writer
	bars bool

	mu    sync.Mutex
	stage string // the latest
	told  bool   // it is on display, or was printed
	late  *time.Timer
	bar   *progressbar.ProgressBar
}

// NewProgress makes one that shows stages on stderr, unless nobody wants to know.
func NewProgress(quiet bool) *Progress {
	if quiet {
		return &Progress{}
	}
	return &Progress{w: os.Stderr, bars: Is(os.Stderr)}
}

// Show displays a stage: a download at once, anything else if it takes long.
func (p *Progress) Show(e supervisor.Event) {
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
		p.late = time.AfterFunc(Patience, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.late != nil && p.stage == e.Text {
				p.tell(e)
			}
		})
	}
}

// tell displays a stage now, or moves its bar. The caller holds mu.
func (p *Progress) tell(e supervisor.Event) {
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
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.w),
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

// Clear takes away what is on display, so that something else can be written.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hide()
}

// hide takes the bar away and ends the wait for a stage. The caller holds mu.
func (p *Progress) hide() {
	if p.late != nil {
		p.late.Stop()
		p.late = nil
	}
	if p.bar != nil {
		_ = p.bar.Finish()
		_ = p.bar.RenderBlank() // takes it away, and ends its spinner
		p.bar = nil
	}
}
