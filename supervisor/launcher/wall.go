package launcher

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Level is what holds a child beside Deno's own permissions. A higher level holds
// all that a lower one does.
type Level int

const (
	// Best is the highest that the machine offers.
	Best Level = iota
	// Deno is the system call filter alone.
	Deno
	// Landlock adds a list of what may be read and written. The names and metadata of
	// other files stay visible.
	Landlock
	// Namespaces adds a root, processes and a network of the child's own: what it was
	// not given has no name there.
	Namespaces
)

var levelNames = []string{Best: "best", Deno: "deno", Landlock: "landlock", Namespaces: "namespaces"}

func (l Level) String() string { return levelNames[l] }

// ParseLevel reads a level's name.
func ParseLevel(name string) (Level, error) {
	if i := slices.Index(levelNames, name); i >= 0 {
		return Level(i), nil
	}
	return Best, fmt.Errorf("want one of %q", levelNames)
}

// Offered is the level that a child gets: this one, or the highest that the machine
// offers if that is lower.
func (l Level) Offered() Level {
	if offered := Offered().Level; l == Best || l > offered {
		return offered
	}
	return l
}

// Certificates are where systems keep the certificates that they trust; what is
// private beside them is not among them.
var Certificates = []string{
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust/extracted",
	"/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
}

// Support says which wall this machine offers.
type Support struct {
	Level Level // the highest
	// Detail is its version, or why there is no higher level and which setting of the
	// machine would help.
	Detail string
}

// Wall is what the kernel lets a child see and do, whatever Deno's own checks
// say. It must allow all that the child's Deno flags allow and its runtime needs.
type Wall struct {
	Level Level
	// Places are what the child sees. The shared libraries of its executable, /dev/null
	// and /dev/urandom come with every wall.
	Places []Place
	// Links are symbolic links in a root of its own, by their names.
	Links map[string]string
	// Hidden are directories that look empty, though a place holds them.
	Hidden []string
	// Listen are TCP ports of 127.0.0.1 in the child's own network on which Start opens
	// listening sockets for us; Dial asks for a socket that can connect to the child's.
	Listen []uint16
	Dial   bool
	// Network leaves the child the machine's network.
	Network bool
	// Connect are the TCP ports that the child may connect to at level Landlock, where
	// it has no network of its own; AnyPort lets it listen on a port that the system chooses.
	Connect []uint16
	AnyPort bool
	// Processes lets the child start processes; without it, only threads.
	Processes bool
	// Interfaces lets the child list its network interfaces.
	Interfaces bool
}

// Access says what may be done with what is at a place and below it.
type Access int

// The kinds of access. Execute lets files be executed and mapped as code; Landlock's
// Read does, too.
const (
	Read Access = 1 << iota
	Write
	Execute
)

// Place is a file or a directory that a child sees.
type Place struct {
	Path string
	// File is the place as it was when it was judged, opened with O_PATH; Start fails
	// with ErrReplaced if something else is at Path now. nil takes what is there.
	File *os.File
	// Name is what it is called in a root of the child's own; empty means Path.
	Name string
	Access
	// Optional passes it over where it does not exist.
	Optional bool
}

func (p Place) name() string { return cmp.Or(p.Name, p.Path) }

// placesAt are places with the same access.
func placesAt(access Access, paths ...string) (places []Place) {
	for _, path := range paths {
		places = append(places, Place{Path: path, Access: access})
	}
	return places
}

// ErrReplaced says that what was granted is not at its place any more.
var ErrReplaced = errors.New("something else has come to its place since it was granted, or it is gone; put it back, or start the server again to grant what is there now")

// Started is a child that has been started.
type Started struct {
	Process   *os.Process
	Listeners []*os.File // of Wall.Listen, in its order
	Socket    *os.File   // of Wall.Dial
}

// Close closes the sockets.
func (s Started) Close() {
	for _, f := range append(s.Listeners, s.Socket) {
		_ = f.Close() // Socket may be nil, which says so
	}
}
