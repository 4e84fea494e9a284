package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

func (s *Server) runCode(ctx context.Context, req *mcp.CallToolRequest, args runArgs) (*mcp.CallToolResult, error) {
	recordOf(ctx).asked(args.Packages, args.Permissions)
	program, err := s.program(args)
	if err != nil {
		recordOf(ctx).Status = StatusRefused
		return nil, err
	}
	id, client, made := program.ID, clientOf(ctx), false
	session, err := handleOf(ctx, args.SessionID)
	if err != nil {
		return nil, err
	}
	if session != "" {
		if made, err = s.o.Supervisor.EnsureSession(client, session); err != nil {
			return nil, err
		}
	}
	call := supervisor.Call{Client: client, Session: session}
	files, err := s.share(ctx, &program, &call, args.Files)
	if err != nil {
		return nil, err
	}
	defer files.remove()
	progress := newStream(ctx, req.Session, req.Params.GetProgressToken(), id)
	progress.combined = program.Combined
	result, err := guarded(s, ctx, progress, func(ctx context.Context) (job.Result, error) {
		call.Emit, call.Known = progress.emit, func() { close(progress.known) }
		if args.Stdin != "" {
			call.Stdin = strings.NewReader(args.Stdin)
		}
		return s.o.Supervisor.Run(ctx, program, call)
	})
	recordOf(ctx).ran(program, result, err)
	s.logRun(ctx, req.ClientInfo(), program, result, err)
	if err != nil {
		return nil, fmt.Errorf("the program was not run: %w", err)
	}
	progress.ended(result.Status, result.Duration)
	most := int(valueOr(args.MaxOutputBytes, maxOutput))
	forDisplays := max(most/2, most-totalSize(result))
	out := runOutputOf(s.fit(result, most-min(textBytes(result.Displays), forDisplays), client))
	out.SessionID = session
	out.Notes = append(out.Notes, files.notes...)
	if made {
		out.Notes = append(out.Notes, isNew(session))
	}
	content := s.addDisplays(&out, result.Displays, files, forDisplays)
	content = append(content, s.tellFiles(files, &out, client, session)...)
	res := answer(out, out.text(), content...)
	res.IsError = result.Status != job.Completed
	return res, nil
}

// guarded does a call's work under a context that Stop cancels too. It closes the call's
// stream before it returns, so that no notification follows the answer. Stop waits for
// the work, not for the stream, whose client may not read.
func guarded[T any](s *Server, ctx context.Context, progress *stream, work func(context.Context) (T, error)) (T, error) {
	defer progress.close()
	ctx, done := s.begin(ctx)
	defer done()
	return work(ctx)
}

func (s *Server) installPackages(ctx context.Context, req *mcp.CallToolRequest, args installArgs) (*mcp.CallToolResult, error) {
	client := clientOf(ctx)
	language, _, err := s.resolve(args.Language, args.SessionID != "")
	if err != nil {
		return nil, err
	}
	if err := checkList("packages", args.Packages); err != nil {
		return nil, err
	}
	recordOf(ctx).Language = language
	recordOf(ctx).asked(args.Packages, nil)
	if len(args.Packages) == 0 {
		return nil, errors.New(`packages is empty: name at least one (["lodash"])`)
	}
	session, err := handleOf(ctx, args.SessionID)
	if err != nil {
		return nil, err
	}
	if session != "" {
		if _, err := s.o.Supervisor.EnsureSession(client, session); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	progress := newStream(ctx, req.Session, req.Params.GetProgressToken(), "")
	packages, err := guarded(s, ctx, progress, func(ctx context.Context) ([]job.Package, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, s.limits.InstallTimeout,
			fmt.Errorf("it took longer than %s", seconds(s.limits.InstallTimeout)))
		defer cancel()
		var result job.Result
		var err error
		if session == "" {
			result.Packages, err = s.o.Supervisor.Install(ctx, client, language, args.Packages, progress.emit)
		} else { // they are installed there, by a cell that has nothing else
			call := supervisor.Call{Client: client, Session: session, Streams: job.Streams{Emit: progress.emit}}
			result, err = s.o.Supervisor.Run(ctx, job.Program{Language: language, Packages: args.Packages}, call)
		}
		if err == nil && result.Error != nil {
			err = fmt.Errorf("%s: %s", result.Error.Name, result.Error.Message)
		}
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		return result.Packages, err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot install %s: %w", strings.Join(args.Packages, ", "), err)
	}
	out := installOutput{Packages: listed(packages), DurationMS: time.Since(start).Milliseconds()}
	return answer(out, "installed: "+packagesText(out.Packages)), nil
}

func (s *Server) cancelExecution(ctx context.Context, req *mcp.CallToolRequest, args cancelArgs) (*mcp.CallToolResult, error) {
	if !s.o.Supervisor.Cancel(clientOf(ctx), args.ExecutionID) {
		return nil, fmt.Errorf("no execution %s of yours is running: it has ended, or the id is another's", quote(args.ExecutionID))
	}
	return answer(cancelOutput{ExecutionID: args.ExecutionID, Cancelled: true}, "cancelled execution "+args.ExecutionID), nil
}
