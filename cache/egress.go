package cache

import (
	"context"
	"fmt"
	"net/url"

	"rillbox/cache/egress"
)

// Aliases for packages that use the cache and little else of egress.
type (
	Policy      = egress.Policy
	Kind        = egress.Kind
	DeniedError = egress.DeniedError
	Source      = egress.Source
)

// The kinds of packages.
const (
	NPM    = egress.NPM
	JSR    = egress.JSR
	Python = egress.Python
)

// See package egress.
var (
	ErrOffline = egress.ErrOffline
	NotCached  = egress.NotCached
	IsLocal    = egress.IsLocal
	IsOffline  = egress.IsOffline
)

// Download is egress.Client.Download for URLs that the operator or Rillbox itself named:
// they may lead anywhere. When the cache is offline the error wraps ErrOffline.
func (c *Cache) Download(ctx context.Context, src Source, dst string, progress func(done, total int64)) error {
	u, err := url.Parse(src.URL)
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	src.Route = egress.Route{Home: u, Named: func(*url.URL) bool { return true }}
	if err := c.network.Download(ctx, src, dst, progress); err != nil {
		return fmt.Errorf("download %s: %w", u.Redacted(), err)
	}
	return nil
}
