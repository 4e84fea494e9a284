package egress

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
)

// ErrOffline says that something had to be fetched and could not be, because
// the network is forbidden or missing.
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
	if errors.Is(err, ErrOffline) || errors.Is(err, errNotConnected) {
		return true
	}
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

var (
	errNotConnected = fmt.Errorf("not connected within %v", connectTime)
	errSilent       = fmt.Errorf("no byte came for %v", idleTime)
	errNotResumed   = errors.New("the server does not continue where the connection dropped")
)

// RefusedError says that a URL is not one to fetch from, or why an answer is of no use.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// PrivateError says that an address is not one to connect to for a program.
type PrivateError struct{ Address netip.Addr }

func (e *PrivateError) Error() string {
	return fmt.Sprintf("%s is a private or reserved address, which is never fetched from for a program", e.Address)
}

// TooLargeError says that more came, or was to come, than Limit bytes.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	limit, unit := e.Limit, "bytes"
	if limit >= 1<<20 {
		limit, unit = limit>>20, "MiB"
	}
	return fmt.Sprintf("it sent more than the %d %s that may come at once", limit, unit)
}

// MismatchError says that a host sent other bytes than those with the hash that was
// wanted. Hashes are in hexadecimal.
type MismatchError struct{ Host, Want, Got string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("refused, as the bytes are not those that are pinned: want hash %s, got %s", e.Want, e.Got)
}

// UnreachableError says that a host gave no answer.
type UnreachableError struct {
	Host string
	Err  error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("%s: %v", e.Host, e.Err) }
func (e *UnreachableError) Unwrap() error { return e.Err }

// StatusError is an answer that is of no use.
type StatusError struct {
	Host string
	Code int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answered %d %s", e.Host, e.Code, http.StatusText(e.Code))
}

// passing says that the answer may be another in a moment.
func (e *StatusError) passing() bool {
	return e.Code == http.StatusTooManyRequests || e.Code == http.StatusRequestTimeout ||
		e.Code >= 500 && e.Code != http.StatusNotImplemented
}

// brokenError says that a body ended early.
type brokenError struct {
	err  error
	last bool // it can't be joined with another
}

func (e *brokenError) Error() string { return "the transfer broke off: " + e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// lasting says that to ask again would end in the same error.
func lasting(err error) bool {
	var (
		denied   *DeniedError
		refused  *RefusedError
		private  *PrivateError
		large    *TooLargeError
		mismatch *MismatchError
		status   *StatusError
		broken   *brokenError
	)
	switch {
	case errors.As(err, &status):
		return !status.passing()
	case errors.As(err, &broken):
		return broken.last
	}
	return errors.As(err, &denied) || errors.As(err, &refused) || errors.As(err, &private) ||
		errors.As(err, &large) || errors.As(err, &mismatch) || IsLocal(err)
}

// bare takes the URL from an error of net/http's, as it may hold a password.
func bare(err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		return with.Err
	}
	return err
}
