package supervisor

import (
	"cmp"
	"context"
	"sync"

	"rillbox/supervisor/job"
	"rillbox/workspace/manifest"
)

// beside runs programs that a client's program asks for, such as a shell's commands, while
// that one waits: they have its place, one at a time. Each is checked as any other.
func (s *Supervisor) beside(client string) func(context.Context, job.Program, job.Streams) (job.Result, error) {
	var turn sync.Mutex
	return func(ctx context.Context, p job.Program, streams job.Streams) (r job.Result, err error) {
		turn.Lock()
		defer turn.Unlock()
		engine, p, err := s.admit(p, s.TermsOf(client))
		if err != nil {
			return r, err
		}
		if p.Workspace != "" {
			project, err := manifest.Open(p.Workspace)
			if err != nil {
				return r, err
			}
			defer project.Close()
			var notes []string
			if p.Manifest, notes, err = manifest.Read(project, cmp.Or(p.Path, "main"), p.Code, p.Language); err != nil {
				return r, job.Refuse("the workspace's files: %v", err)
			}
			defer func() { r.Notes = append(notes, r.Notes...) }()
		}
		streams.Emit = serialised(streams.Emit)
		return engine.Run(ctx, p, streams)
	}
}
