package server

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
)

// logRun logs one line for a run, or for a program that was not run: who, what and
// how it went; nothing of the code, its input, its environment or its output.
func (s *Server) logRun(ctx context.Context, from *mcp.Implementation, p job.Program, r job.Result, err error) {
	client := clientOf(ctx)
	line := s.o.Log.With("execution", p.ID, "client", identity(from, client), "language", cmp.Or(r.Language, p.Language))
	if request := recordOf(ctx).Request; request != "" { // then the client is not all that is known of whose it is
		line = line.With("identity", client, "request", request)
	}
	switch status := statusOf(err); {
	case err != nil && status == StatusError:
		line.Warn("a program was not run", "status", status, "error", err)
	case err != nil: // its words may be the client's
		line.Info("a program was not run", "status", status)
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
		list = append(list, strings.TrimSpace(job.ShowName(withoutSecrets(p.Name))+" "+job.ShowLine(p.Version, maxIdentity)))
	}
	return strings.Join(list, ", ")
}
