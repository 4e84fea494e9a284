package server

import (
	"path"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ToolList says which tools may be used: those that Allow names, or all where it is
// empty, without those that Deny names. A name may be a glob such as *_file.
type ToolList struct{ Allow, Deny []string }

// Has says whether a tool may be used.
func (l ToolList) Has(tool string) bool {
	names := func(glob string) bool {
		match, err := path.Match(glob, tool)
		return match && err == nil // a glob that is none names nothing, as Unknown says
	}
	return (len(l.Allow) == 0 || slices.ContainsFunc(l.Allow, names)) && !slices.ContainsFunc(l.Deny, names)
}

// Unknown are the names in the list that no tool has.
func (l ToolList) Unknown(tools []string) (unknown []string) {
	for _, name := range slices.Concat(l.Allow, l.Deny) {
		if !slices.ContainsFunc(tools, func(tool string) bool { return !(ToolList{Deny: []string{name}}).Has(tool) }) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// Tools are the names of all tools.
func (s *Server) Tools() []string {
	var names []string
	for _, t := range s.tools {
		names = append(names, t.Name)
	}
	return names
}

// may says whether a caller may use a tool.
func (s *Server) may(from Caller, tool string) bool {
	return s.o.Tools.Has(tool) && from.Tools.Has(tool)
}

// allowed is a list of tools without those that its caller may not use.
func (s *Server) allowed(from Caller, all *mcp.ListToolsResult) *mcp.ListToolsResult {
	some := *all
	some.Tools = slices.DeleteFunc(slices.Clone(all.Tools), func(t *mcp.Tool) bool { return !s.may(from, t.Name) })
	return &some
}
