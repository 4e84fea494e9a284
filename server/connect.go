package server

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Connect serves one more client on a transport of its own, until that ends.
// Its runs are its own: no other client can name or cancel them.
func (s *Server) Connect(ctx context.Context, transport mcp.Transport) (*mcp.ServerSession, error) {
	return s.connectInOrder(ctx, transport)
}
