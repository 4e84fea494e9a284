package egress

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// ErrOffline says that something had to be fetched and could not be, because
// the cache is offline or because there is no network.
var ErrOffline = errors.New("the network is not reachable")

// NotCached is the error for what is wanted, not here, and not to be had
// without the network; what names it as a person would ("Deno 2.9.6"). It
// wraps ErrOffline.
func NotCached(what string) error {
	return fmt.Errorf("%s is not in the cache, and %w", what, ErrOffline)
}

// IsLocal says that err came of this machine, such as a full disk, and not from the
// network or from what the other side answered.
func IsLocal(err error) bool {
	var file *fs.PathError
	var files *os.LinkError
	return errors.As(err, &file) || errors.As(err, &files) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsOffline says that err came from the network being forbidden, absent or
// unreachable, and not from what the other side answered.
func IsOffline(err error) bool {
	if errors.Is(err, ErrOffline) {
		return true
	}
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}
