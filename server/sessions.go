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

// minIdle is the shortest idle_timeout_seconds that makes sense.
const minIdle = time.Second

// The arguments and answers of the tools for sessions.

type createArgs struct {
	SessionID          string   `json:"session_id,omitempty" jsonschema:"A name of your choice. Absent: one is made up."`
	Language           string   `json:"language,omitempty" jsonschema:"Starts its process now."`
	Packages           []string `json:"packages,omitempty" jsonschema:"Of that language, to have ready, as in run_code."`
	IdleTimeoutSeconds *float64 `json:"idle_timeout_seconds,omitempty" jsonschema:"Ends by itself when not used for so long."`
	Permissions        []string `json:"permissions,omitempty" jsonschema:"As in run_code, for all cells."`
}

type resetArgs struct {
	SessionID string `json:"session_id" jsonschema:"As in run_code."`
	Language  string `json:"language,omitempty" jsonschema:"Only this one's variables. Absent: those of all."`
	Variables *bool  `json:"variables,omitempty" jsonschema:"false keeps them."`
	Files     bool   `json:"files,omitempty" jsonschema:"Deletes all files of its workspace, too."`
}

type destroyArgs struct {
	SessionID string `json:"session_id" jsonschema:"As in run_code."`
}

type listSessionsArgs struct{}

type sessionInfo struct {
	SessionID          string        `json:"session_id"`           // The handle for run_code and the file tools. It is yours alone
	Language           string        `json:"language,omitempty"`   // That of a cell that names none
	Languages          []string      `json:"languages"`            // Those that have a process now
	AgeSeconds         float64       `json:"age_seconds"`          // How long ago it was made
	IdleSeconds        float64       `json:"idle_seconds"`         // How long ago it was last used
	IdleTimeoutSeconds float64       `json:"idle_timeout_seconds"` // It ends by itself after so long without use
	Running            bool          `json:"running"`              // Whether a cell is running now
	MemoryBytes        int64         `json:"memory_bytes"`         // Memory that its processes use
	Files              int64         `json:"files"`                // How many files and folders its workspace holds
	FileBytes          int64         `json:"file_bytes"`           // How many bytes they have
	Packages           []job.Package `json:"packages"`             // What was installed in it
}

type sessionsOutput struct {
	Sessions []sessionInfo `json:"sessions"` // Your sessions, the oldest first
}

type destroyOutput struct {
	SessionID string `json:"session_id"` // The session that has ended
	Destroyed bool   `json:"destroyed"`  // True: its process, its state and its files are gone
}

func (s *Server) addSessionTools() {
	create := schemaFor[createArgs]()
	s.describeLanguages(create)
	idle := create.Properties["idle_timeout_seconds"]
	idle.Minimum = new(minIdle.Seconds())
	idle.Maximum = new(s.limits.MaxSessionIdle.Seconds())
	idle.Default = jsonNumber(s.limits.SessionIdle.Seconds())
	addTool[createArgs, sessionInfo](s, &mcp.Tool{
		Name:  "create_session",
		Title: "Create a session",
		Description: fmt.Sprintf("Makes a session: a workspace for files, and a process for each language that its cells are in, which keeps variables and imports from one run_code call to the next. "+
			"Rarely needed, for run_code makes \"default\" and any session that you name: use this for permissions, an idle time, or packages ahead of the first cell. "+
			"You may have %d; each ends after its idle time, by destroy_session, or when you disconnect.", s.limits.Sessions),
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		InputSchema: create,
	}, s.createSession)
	reset := outputFor[sessionInfo]() // create_session tells what else is in it
	for name := range reset.Properties {
		if name != "session_id" {
			delete(reset.Properties, name)
		}
	}
	addTool[resetArgs, sessionInfo](s, &mcp.Tool{
		Name:  "reset_session",
		Title: "Reset a session",
		Description: "Gives a session new, empty processes: variables, imports and installed packages are gone, a cell that runs is ended; its files and its id stay. " +
			"For when the state is no longer what you think it is. With files true and variables false it is the files that go. To end it, destroy_session.",
		Annotations:  &mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)},
		OutputSchema: reset,
	}, s.resetSession)
	addTool[destroyArgs, destroyOutput](s, &mcp.Tool{
		Name:        "destroy_session",
		Title:       "Destroy a session",
		Description: "Ends a session for good: its processes, its state and its files. Use it when the work is done, to make room; read what you want to keep before. To begin anew in it, reset_session.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)},
	}, s.destroySession)
	listed := outputFor[sessionsOutput]()
	listed.Properties["sessions"].Items.Properties = nil // as create_session's
	addTool[listSessionsArgs, sessionsOutput](s, &mcp.Tool{
		Name:         "list_sessions",
		Title:        "List sessions",
		Description:  "Lists your sessions with their languages, age, idle time, memory, files and packages. For an id, or what to end. It keeps no session from ending, and list_files tells of the files.",
		Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false)},
		OutputSchema: listed,
	}, s.listSessions)
}

func (s *Server) createSession(ctx context.Context, req *mcp.CallToolRequest, args createArgs) (*mcp.CallToolResult, error) {
	recordOf(ctx).asked(args.Packages, args.Permissions)
	language, _, err := s.resolve(args.Language, true)
	recordOf(ctx).Language = language
	if err == nil {
		err = errors.Join(checkList("packages", args.Packages), checkList("permissions", args.Permissions))
	}
	if err != nil {
		return nil, err
	}
	idle, err := timeoutOf("idle_timeout_seconds", args.IdleTimeoutSeconds, minIdle, s.limits.MaxSessionIdle, s.limits.SessionIdle)
	if err != nil {
		return nil, err
	}
	session, err := handleOf(ctx, args.SessionID)
	if err != nil {
		return nil, err
	}
	progress := newStream(ctx, req.Session, req.Params.GetProgressToken(), "")
	info, err := guarded(s, ctx, progress, func(ctx context.Context) (supervisor.SessionInfo, error) {
		return s.o.Supervisor.CreateSession(ctx, supervisor.SessionRequest{
			Client: clientOf(ctx), ID: session, Language: language,
			Packages: args.Packages, Permissions: args.Permissions, Idle: idle,
		}, progress.emit)
	})
	if err != nil {
		return nil, fmt.Errorf("no session was made: %w", err)
	}
	s.o.Log.Info("made a session", "language", info.Language)
	s.filesChanged(clientOf(ctx))
	return sessionResult(info, "made"), nil
}

func (s *Server) resetSession(ctx context.Context, req *mcp.CallToolRequest, args resetArgs) (*mcp.CallToolResult, error) {
	language, _, err := s.resolve(args.Language, true)
	reset := supervisor.Reset{Language: language, Files: args.Files, Variables: valueOr(args.Variables, true)}
	if err == nil && !reset.Files && !reset.Variables {
		err = errors.New("reset_session with variables false resets nothing: say files true, or leave variables out")
	}
	if err != nil {
		return nil, err
	}
	client := clientOf(ctx)
	session, err := handleOf(ctx, args.SessionID)
	if err != nil {
		return nil, err
	}
	info, err := s.o.Supervisor.ResetSession(ctx, client, session, reset)
	if err != nil {
		return nil, err
	}
	if reset.Files {
		s.filesChanged(client)
	}
	return sessionResult(info, "reset"), nil
}

func (s *Server) destroySession(ctx context.Context, req *mcp.CallToolRequest, args destroyArgs) (*mcp.CallToolResult, error) {
	client := clientOf(ctx)
	session, err := handleOf(ctx, args.SessionID)
	if err != nil {
		return nil, err
	}
	if err := s.o.Supervisor.DestroySession(client, session); err != nil {
		return nil, err
	}
	s.filesChanged(client)
	return answer(destroyOutput{session, true}, "destroyed session "+session), nil
}

func (s *Server) listSessions(ctx context.Context, _ *mcp.CallToolRequest, _ listSessionsArgs) (*mcp.CallToolResult, error) {
	out := sessionsOutput{Sessions: []sessionInfo{}}
	var lines []string
	for _, info := range s.o.Supervisor.ListSessions(clientOf(ctx)) {
		out.Sessions = append(out.Sessions, sessionInfoOf(info))
		lines = append(lines, sessionText(info))
	}
	if len(lines) == 0 {
		lines = []string{"You have no sessions."}
	}
	return answer(out, strings.Join(lines, "\n")), nil
}

func sessionResult(info supervisor.SessionInfo, what string) *mcp.CallToolResult {
	return answer(sessionInfoOf(info), what+" session "+sessionText(info))
}

func sessionInfoOf(i supervisor.SessionInfo) sessionInfo {
	return sessionInfo{
		SessionID: i.ID, Language: string(i.Language), Languages: languageNames(i.Languages),
		AgeSeconds:         roundSeconds(time.Since(i.Created)),
		IdleSeconds:        roundSeconds(time.Since(i.Used)),
		IdleTimeoutSeconds: i.Idle.Seconds(),
		Running:            i.Running,
		MemoryBytes:        i.Memory,
		Files:              i.Files.Files,
		FileBytes:          i.Files.Bytes,
		Packages:           listed(i.Packages),
	}
}

func roundSeconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func sessionText(i supervisor.SessionInfo) string {
	languages := "no process"
	if len(i.Languages) > 0 {
		languages = strings.Join(languageNames(i.Languages), ", ")
	}
	text := fmt.Sprintf("%s: %s; %v old, idle %v of %v, memory %s, %s (%s)",
		i.ID, languages, time.Since(i.Created).Round(time.Second), time.Since(i.Used).Round(time.Second), i.Idle,
		size(i.Memory), several(i.Files.Files, "file"), size(i.Files.Bytes))
	if len(i.Packages) > 0 {
		text += ", packages " + packagesText(listed(i.Packages))
	}
	return text
}

func languageNames(languages []job.Language) []string {
	names := []string{} // a list, never null
	for _, language := range languages {
		names = append(names, string(language))
	}
	return names
}

// isNew tells that a call made the session that it named: an earlier one of that name
// has ended.
func isNew(session string) string { return fmt.Sprintf("session %s is new", session) }
