package cache

import "rillbox/cache/egress"

// Names of package egress, for those who also use the cache.
type (
	Policy      = egress.Policy
	Kind        = egress.Kind
	DeniedError = egress.DeniedError
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
