package server

import (
	"maps"
	"slices"

	"rillbox/supervisor"
)

// Status is how a server is, as a client of it may know.
type Status struct {
	runtimesOutput
	Identity string `json:"identity"` // The client's own
	Running  int    `json:"running"`  // Programs that run, of all clients
	Waiting  int    `json:"waiting"`  // Programs that wait for a place
	Warm     []int  `json:"warm"`     // Workers of each runtime that wait for a program
	Hits     int64  `json:"cache_hits"`
	Misses   int64  `json:"cache_misses"`
	// Yours is what the client has, All what each has, for who may know.
	Yours supervisor.Of `json:"yours"`
	All   []Client      `json:"all,omitempty"`
}

// Client is a client with what it has.
type Client struct {
	Name string `json:"name"`
	supervisor.Of
}

// Status says how the server is to one of its clients. With all, it names the others, too.
func (s *Server) Status(client string, all bool) Status {
	load, of := s.o.Supervisor.Load(), s.o.Supervisor.LoadOf()
	runtimes, _ := s.runtimes(client)
	status := Status{
		runtimesOutput: runtimes, Identity: client,
		Running: load.Running, Waiting: load.Waiting, Warm: []int{}, Yours: of[client],
	}
	if s.o.Lookups != nil {
		status.Hits, status.Misses = s.o.Lookups()
	}
	for _, t := range s.o.Supervisor.Toolchains() {
		status.Warm = append(status.Warm, t.Describe().Warm)
	}
	if all {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			status.All = append(status.All, Client{name, of[name]})
		}
	}
	return status
}
