package server

import (
	"cmp"
	"errors"
	"log/slog"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// logRun logs one line for a run, or for a program that was not run: who, what and
// how it went; nothing of the code, its input, its environment or its output.
func (s *Server) logRun(from *mcp.Implementation, client string, p job.Program, r job.Result, err error) {
	line := s.o.Log.With("execution", p.ID, "client", identity(from, client), "language", cmp.Or(r.Language, p.Language))
	var refused *job.ProgramError
	var busy *supervisor.BusyError
	switch {
	case errors.As(err, &busy):
		line.Info("a program was not run", "status", "busy")
	case errors.As(err, &refused): // its words may be the client's
		line.Info("a program was not run", "status", "refused")
	case err != nil:
		line.Warn("a program was not run", "status", "error", "error", err)
	default:
		line.Info("ran a program", "packages", packagesForLog(r.Packages), "status", r.Status, "exit_code", r.ExitCode,
			slog.Int64("waited_ms", r.Waited.Milliseconds()), slog.Int64("install_ms", r.Installing.Milliseconds()),
			slog.Int64("run_ms", r.Duration.Milliseconds()), slog.Int64("cpu_ms", r.CPU.Milliseconds()), "peak_memory_bytes", r.PeakMemory)
	}
}

// maxIdentity is how many bytes of a client's own words about itself are logged.
const maxIdentity = 200

// identity is what a client calls itself, else what its door calls it.
func identity(from *mcp.Implementation, client string) string {
	if from != nil && from.Name != "" {
		return job.ShowLine(strings.TrimSpace(from.Name+" "+from.Version), maxIdentity)
	}
	return client
}

// packagesForLog are packages by name and version. Of URLs, host and path are
// logged: the rest may be a secret.
func packagesForLog(packages []job.Package) string {
	var list []string
	for _, p := range packages {
		name := p.Name
		if u, err := url.Parse(name); err == nil && u.Host != "" {
			name = u.Host + u.Path
		}
		list = append(list, strings.TrimSpace(job.ShowName(name)+" "+job.ShowLine(p.Version, maxIdentity)))
	}
	return strings.Join(list, ", ")
}
