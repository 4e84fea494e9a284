//go:build !windows

package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"rillbox/supervisor/job"
)

// ShowAfter is how long a stage without a download takes before it is shown: most
// end sooner, and would only clutter a program's output.
const ShowAfter = time.Second

// maxStage is how many bytes are shown of a stage.
const maxStage = 300

// Progress shows stages on stderr: a bar at a terminal, else one plain line for
// each stage. Its zero value shows nothing.
type Progress struct {
	w    io.Writer
	bars bool

	mu    sync.Mutex
	stage string // the latest
	shown bool   // it is displayed, or was printed
	timer *time.Timer
	bar   *progressbar.ProgressBar
}

// NewProgress makes one that shows stages on stderr; with quiet, nothing.
func NewProgress(quiet bool) *Progress {
	if quiet {
		return &Progress{}
	}
	return &Progress{w: os.Stderr, bars: Is(os.Stderr)}
}

// Show displays a stage: a download at once, anything else if it takes long.
func (p *Progress) Show(e job.Event) {
	if p.w == nil || e.Text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Text != p.stage {
		p.hide()
		p.stage, p.shown = e.Text, false
	}
	switch {
	case e.Done > 0 || e.Total > 0:
		p.display(e)
	case !p.shown && p.timer == nil:
		p.timer = time.AfterFunc(ShowAfter, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.timer != nil && p.stage == e.Text {
				p.display(e)
			}
		})
	}
}

// display displays a stage now, or moves its bar. The caller holds mu.
func (p *Progress) display(e job.Event) {
	if !p.bars {
		if !p.shown {
			fmt.Fprintln(p.w, job.ShowLine(e.Text, maxStage))
		}
		p.shown = true
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
			progressbar.OptionSetDescription(job.ShowLine(e.Text, maxStage)),
			progressbar.OptionShowBytes(e.Done > 0 || e.Total > 0),
			progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(65*time.Millisecond),
			progressbar.OptionSetRenderBlankState(true),
			progressbar.OptionClearOnFinish(),
		)
	}
	p.shown = true
	if e.Done > 0 {
		_ = p.bar.Set64(e.Done) // a bar that can't be drawn is no reason to stop
	}
}

// Clear removes what is displayed, so that something else can be written.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hide()
}

// hide removes the bar and stops the timer of a stage. The caller holds mu.
func (p *Progress) hide() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.bar != nil {
		_ = p.bar.Finish()
		_ = p.bar.RenderBlank() // removes it, and stops its spinner
		p.bar = nil
	}
}
