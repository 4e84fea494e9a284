package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/workspace/manifest"
)

// process is what a session has of one language: its child, and what is known of it.
// Who has the session's turn may use it; what info tells of is under the session's mu.
type process struct {
	// session is the child; nil when there is none yet, or none any more.
	session job.Session
	lost    string // why a child is gone, until the client was told

	running  bool
	memory   func() int64 // nil without a child
	packages []job.Package
}

// process is the session's of a language. The caller has the turn.
func (o *openSession) process(language job.Language) *process {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.processes[language]
	if p == nil {
		p = &process{}
		o.processes[language] = p
	}
	return p
}

// run runs one cell, in a new child if there is none. The caller has the turn.
func (o *openSession) run(ctx context.Context, opener job.SessionOpener, p job.Program, c Call) (job.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.ctx, func() { cancel(context.Cause(o.ctx)) })()
	in := o.process(p.Language)
	var notes []string
	if in.session != nil && sessionEnded(in.session) { // while nobody was looking
		o.drop(in, "its process ended between two cells")
	}
	if in.session == nil {
		if err := o.full(); err != nil {
			return job.Result{}, err
		}
		options := o.options
		options.Language, options.Most, options.Policy = p.Language, p.Most, p.Policy
		session, err := opener.OpenSession(ctx, options, c.Emit)
		if err != nil && ctx.Err() != nil {
			return cancelledBefore(ctx, o), nil
		}
		if err != nil {
			return job.Result{}, err
		}
		in.session = session
	}
	if in.lost != "" {
		notes = append(notes, fmt.Sprintf("the session's state was lost (%s): this cell began in an empty session; its files are as they were", in.lost))
	}
	o.set(in, true)
	if c.onlyOpen {
		o.set(in, false)
		return job.Result{Status: job.Completed}, nil
	}
	told, err := o.readManifest(&p)
	if err != nil {
		o.set(in, false)
		return job.Result{}, err
	}
	notes = append(notes, told...)
	within := o.watchQuota(cancel)
	result, err := in.session.Run(ctx, p, c.Streams)
	if !within() {
		notes = append(notes, errQuota.Error())
	}
	o.set(in, false)
	o.keep(in, result.Packages)
	heard := !errors.Is(context.Cause(ctx), context.Canceled) // who took the call back reads no answer
	if heard {
		in.lost = ""
	}
	why := context.Cause(o.ctx) // it is over
	if why == nil && errors.Is(context.Cause(ctx), errReset) {
		why = errReset
	}
	if errors.Is(context.Cause(ctx), errQuota) && err == nil {
		result.Status, result.ExitCode = job.Failed, 1
		result.Error = &job.GuestError{Name: "DiskQuotaExceeded", Message: errQuota.Error()}
	}
	switch {
	case err != nil:
		o.drop(in, "Rillbox failed: "+err.Error())
	case why != nil:
		result.State = job.StateLost
		if result.Error != nil {
			result.Error = &job.GuestError{Name: result.Error.Name, Message: "the cell was cancelled: " + why.Error()}
		}
	case result.State == job.StateLost || sessionEnded(in.session):
		result.State = job.StateLost
		reason := string(result.Status)
		if result.Error != nil {
			reason = result.Error.Message
		}
		o.drop(in, reason)
		if heard {
			in.lost = ""
		}
		notes = append(notes, "the session's state is lost: the next cell begins in an empty session, with the files as they are")
	}
	result.Notes = append(notes, result.Notes...)
	return result, err
}

// readManifest reads what the files of the workspace say of what a cell imports, unless
// the call has its own. notes are what of it is not honoured and was not told yet. The
// caller has the turn.
func (o *openSession) readManifest(p *job.Program) (notes []string, err error) {
	imports := strings.Contains(p.Code, "import") || strings.Contains(p.Code, "require") || strings.Contains(p.Code, "<")
	if o.options.Workspace == "" || !imports || !p.Manifest.IsZero() {
		return nil, nil
	}
	project, err := manifest.Open(o.options.Workspace)
	if err != nil {
		return nil, err
	}
	defer project.Close()
	var all []string
	if p.Manifest, all, err = manifest.Read(project, "cell", p.Code, p.Language); err != nil {
		return nil, job.Refuse("the session's files: %v", err)
	}
	for _, note := range all {
		if !slices.Contains(o.told, note) && len(o.told) < maxTold {
			o.told = append(o.told, note)
			notes = append(notes, note)
		}
	}
	return notes, nil
}

// maxTold is how many lines on its manifests a session tells.
const maxTold = 100

// full says that a process would be ended as it begins, for what is in the workspace.
func (o *openSession) full() error {
	most := o.files.Options()
	used, _ := o.files.Usage() // it was closed: the session has just ended
	if most.Bytes > 0 && used.Bytes > most.Bytes || most.Files > 0 && used.Files > most.Files {
		return job.Refuse("the session's workspace holds %d files and folders with %d bytes, and may hold %d with %d: delete some with delete_file, or all with reset_session and files true",
			used.Files, used.Bytes, most.Files, most.Bytes)
	}
	return nil
}

// errQuota ends a cell.
var errQuota = errors.New("the files of all your sessions have more bytes than they may: delete some with delete_file, or a session with destroy_session")

// watchQuota ends a cell when its client's files outgrow their quota. What it gives
// must be called when the cell has ended, and says whether all is within it.
func (o *openSession) watchQuota(end context.CancelCauseFunc) (within func() bool) {
	if o.files.Options().Quota == nil {
		return func() bool { return true }
	}
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		looks := time.NewTicker(sandbox.DiskLooks * sandbox.BusyInterval)
		defer looks.Stop()
		for {
			select {
			case <-over:
				return
			case <-looks.C:
			}
			if !o.files.WithinQuota() {
				end(errQuota)
			}
		}
	})
	return func() bool {
		close(over)
		watch.Wait()
		return o.files.WithinQuota()
	}
}

func sessionEnded(s job.Session) bool {
	select {
	case <-s.Ended():
		return true
	default:
		return false
	}
}

// drop ends the child, for a reason that the next cell tells.
func (o *openSession) drop(p *process, reason string) {
	p.session.Close()
	p.session, p.lost = nil, reason
	o.mu.Lock()
	defer o.mu.Unlock()
	p.running, p.memory, p.packages = false, nil, nil
}

// dropAll ends the child of a language or, where it is empty, all. The caller has
// the turn.
func (o *openSession) dropAll(language job.Language) {
	o.mu.Lock()
	var all []*process
	for of, p := range o.processes {
		if language == "" || of == language {
			all = append(all, p)
		}
	}
	o.mu.Unlock()
	for _, p := range all {
		if p.session != nil {
			o.drop(p, "")
		}
		p.lost = ""
	}
}

func (o *openSession) set(p *process, running bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.running, p.memory = running, p.session.Memory
}

// keep notes what a cell installed.
func (o *openSession) keep(p *process, packages []job.Package) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, of := range packages {
		of.Cached = true
		if !slices.Contains(p.packages, of) {
			p.packages = append(p.packages, of)
		}
	}
}
