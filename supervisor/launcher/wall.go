package launcher

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// Level says by what a child is held beside Deno's own permissions. A higher
// level holds all that a lower one does.
type Level int

const (
	// Best is the highest that the machine offers.
	Best Level = iota
	// Deno is no wall but the system call filter: Deno's permissions stand alone.
	Deno
	// Landlock is a list of what may be read and written, and the system call
	// filter. What is not on the list has a name all the same, and can be looked at.
	Landlock
	// Namespaces is a root, processes and a network of the child's own: what it
	// was not given has no name there. The filter stands before them.
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

// Offered is the level that a child has for which this one is asked: no higher
// one than the machine offers.
func (l Level) Offered() Level {
	offered := Offered().Level
	if l == Best {
		return offered
	}
	return min(l, offered)
}

// Certificates are where systems keep the certificates that they trust; what is
// private beside them is not among them.
var Certificates = []string{
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust/extracted",
	"/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
}

// Support says which wall this machine offers.
type Support struct {
	// Level is the highest that there is.
	Level Level
	// Detail is its version, or what a higher one lacks and which setting of the
	// machine would help.
	Detail string
}

// Wall is what the kernel lets a child see and do, whatever Deno's own checks
// say. It must allow all that the child's Deno flags allow and its runtime needs.
type Wall struct {
	Level Level
	// Places are what the child sees; the shared libraries of its executable and
	// /dev/null and /dev/urandom come with every wall.
	Places []Place
	// Links are symbolic links that a root of its own has, from their names to
	// what they lead to.
	Links map[string]string
	// Hidden are directories of which nothing is seen, though a place holds them.
	Hidden []string
	// Listen are TCP ports of 127.0.0.1 in the child's own network on which Start
	// opens sockets that listen, for us.
	Listen []uint16
	// Dial asks for a socket of the child's own network with which we can connect
	// to a port of the child's.
	Dial bool
	// Network leaves the child the machine's network.
	Network bool
	// Connect are the TCP ports of the machine's own network that the child may
	// connect to, and AnyPort lets it listen on one of the system's choice: at
	// level Landlock, which knows no network of the child's own.
	Connect []uint16
	AnyPort bool
	// Processes lets the child start processes; without it, only threads.
	Processes bool
	// Interfaces lets the child ask for the network interfaces that it has.
	Interfaces bool
}

// Access says what may be done with what is at a place and below it.
type Access int

// The kinds of access.
const (
	Read Access = 1 << iota
	Write
	// Execute lets files be executed and mapped as code. Landlock's Read does, too.
	Execute
)

// Place is a file or a directory that a child sees.
type Place struct {
	// Path is where it is.
	Path string
	// File is what it is, opened (O_PATH) when it was judged. Start refuses the
	// child where something else has come to Path since. nil takes what is there.
	File *os.File
	// Name is what it is called in a root of the child's own; empty means Path.
	Name string
	Access
	// Optional passes it over where it does not exist.
	Optional bool
}

func (p Place) name() string {
	if p.Name == "" {
		return p.Path
	}
	return p.Name
}

// ErrReplaced says that what was granted is not at its place any more.
var ErrReplaced = errors.New("something else has come to its place since it was granted, or it is gone; put it back, or start the server again to grant what is there now")

// Started is a child that has been started.
type Started struct {
	Process *os.Process
	// Listeners are the sockets of Wall.Listen, in its order; Socket is that of
	// Wall.Dial. They are the caller's to close.
	Listeners []*os.File
	Socket    *os.File
}

// Close closes what came with the process.
func (s Started) Close() {
	for _, f := range append(s.Listeners, s.Socket) {
		if f != nil {
			_ = f.Close()
		}
	}
}
