package launcher

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A child's own root is a small read-only file system in memory with the child's
// places mounted under their names. The order of the steps matters:
//
//	become nobody     the capabilities to mount come with the user namespace
//	find the places   while the machine's tree is there; compare them with what was judged
//	make the root     directories, links and mounts, without following a link
//	enter it          and unmount the machine's tree
//	make the network  open the sockets that we keep
//	give up           capabilities, then new privileges, then system calls

// mountAttrSize is the size of struct mount_attr, mount_setattr(2), in bytes.
const mountAttrSize = 32

// runtimePlaces are what every process needs of the machine.
func runtimePlaces(w *Wall) []Place {
	places := append(placesAt(Read|Write, "/dev/null"), placesAt(Read, "/dev/urandom")...)
	if w.Processes {
		places = slices.Concat(places, placesAt(Read, "/dev/random"), placesAt(Read|Write, "/dev/zero", "/dev/full"))
	}
	if w.Network {
		for _, p := range placesAt(Read, networkPaths...) {
			p.Optional = true
			places = append(places, p)
		}
	}
	return places
}

// networkPaths are the certificates and the resolver's files.
var networkPaths = slices.Concat(Certificates, []string{
	"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
})

// ownFiles are what a process sees of itself in /proc; the first is a directory.
var ownFiles = []string{"/proc/self/fd", "/proc/self/maps", "/proc/self/statm"}

// follow resolves the links of the root in a name.
func (w *Wall) follow(name string) string {
	for link, to := range w.Links {
		if rest, behind := strings.CutPrefix(name, link+"/"); behind {
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(link), to)
			}
			return filepath.Join(to, rest)
		}
	}
	return name
}

// within reports whether a name is dir or below it.
func within(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}

// mounted is a place that has been found.
type mounted struct {
	Place
	now    string // its path, which may have changed since it was judged
	stat   unix.Stat_t
	mapped bool  // its files belong to otherUser, if the child becomes that
	tree   *call // opens its mount
}

func (m *mounted) is(kind uint32) bool { return m.stat.Mode&unix.S_IFMT == kind }

// collect finds the places of a child whose executable is path, and those that every
// child needs. Outer places come first.
func (f *plan) collect(w *Wall, path string) (found []mounted, err error) {
	places := slices.Concat(w.Places, runtimePlaces(w))
	if i := slices.IndexFunc(w.Places, func(p Place) bool { return p.name() == path }); i >= 0 {
		libraries, err := w.libraries(w.Places[i].Path)
		if err != nil {
			return nil, err
		}
		places = append(places, libraries...)
	}
	seen := map[string]int{}
	for n, p := range places {
		if i, again := seen[p.name()]; again {
			found[i].Access |= p.Access
			continue
		}
		if p.Optional && slices.ContainsFunc(w.Places, func(o Place) bool { return !o.Optional && o.name() != p.name() && within(p.name(), o.name()) }) {
			continue // the outer place has it, if it exists
		}
		m := mounted{Place: p, mapped: n < len(w.Places)}
		if err := m.look(); p.Optional && errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		seen[p.name()] = len(found)
		found = append(found, m)
	}
	slices.SortStableFunc(found, func(a, b mounted) int { return cmp.Compare(len(a.name()), len(b.name())) })
	return found, nil
}

// root makes the root of the child, in which its executable is path and which holds
// what was found.
func (f *plan) root(w *Wall, path string, found []mounted) {
	for i := range found {
		if found[i].tree == nil {
			f.open(&found[i])
		}
		f.restrict(found[i].tree, found[i].Access, found[i].is(unix.S_IFCHR))
	}

	// Of /proc a process sees its descriptors, its memory map, in which the C library
	// finds the stack, and its size.
	own := map[string]*call{}
	for _, name := range ownFiles {
		own[name] = f.add(stepPlace, unix.SYS_OPEN_TREE, unix.AT_FDCWD, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC).on(name)
	}

	f.add(stepRoot, unix.SYS_MOUNT, "tmpfs", "/proc", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4m,mode=0755")
	f.add(stepRoot, unix.SYS_CHDIR, "/proc")
	mask := f.add(stepRoot, unix.SYS_UMASK, 0) // modes in the root don't depend on the server's umask
	made := &tree{f: f, made: map[string]bool{"/": true}}
	for _, name := range slices.Sorted(maps.Keys(w.Links)) {
		at := w.follow(name)
		if !made.made[at] && !slices.ContainsFunc(found, func(m mounted) bool { return within(at, m.name()) }) { // else it is there
			made.link(w.Links[name], at)
		}
	}
	made.link("/proc/self/fd", "/dev/fd")
	made.link(path, "/proc/self/exe")
	made.directory(ownFiles[0])
	for _, name := range ownFiles[1:] {
		made.file(name)
	}
	for _, name := range ownFiles {
		f.attach(own[name], name)
	}
	if w.Processes {
		// Programs read more of /proc, each about itself. Where a container forbids to
		// mount it, they see the first process's files.
		f.add(stepRoot, unix.SYS_MOUNT, "proc", "proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "subset=pid").ignored = anyError
	}
	if len(w.Hidden) > 0 {
		made.directory("/rillbox/nothing")
	}
	for _, m := range found {
		if !made.holds(m.name()) {
			if m.is(unix.S_IFDIR) {
				made.directory(m.name())
			} else {
				made.file(m.name())
			}
		}
		f.attach(m.tree, m.name())
		if m.is(unix.S_IFDIR) {
			made.places = append(made.places, m.name())
		}
	}
	for _, hidden := range w.Hidden {
		if made.holds(hidden) {
			made.pin(filepath.Dir(hidden))
			nothing := f.add(stepRoot, unix.SYS_OPEN_TREE, unix.AT_FDCWD, "rillbox/nothing", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			f.restrict(nothing, Read, false)
			f.attach(nothing, hidden)
		}
	}

	f.add(stepRoot, unix.SYS_UMASK, mask)

	f.add(stepEnter, unix.SYS_PIVOT_ROOT, ".", ".")
	f.add(stepEnter, unix.SYS_UMOUNT2, ".", unix.MNT_DETACH)
	f.add(stepEnter, unix.SYS_CHDIR, "/")
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	f.add(stepEnter, unix.SYS_MOUNT_SETATTR, unix.AT_FDCWD, "/", 0, attributes, mountAttrSize)
}

// look finds the place's current path and what is there.
func (m *mounted) look() (err error) {
	m.now = m.Path
	if m.File == nil {
		err = unix.Stat(m.now, &m.stat)
	} else if m.now, err = pathOf(m.File); err == nil {
		err = unix.Fstat(int(m.File.Fd()), &m.stat)
	}
	if err != nil {
		return fmt.Errorf("look at %s, which the child is to see: %w", m.Path, err)
	}
	return nil
}

// open opens a place, and fails if it is not the file that was judged.
func (f *plan) open(m *mounted) {
	path := m.now
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE
	if m.File == nil {
		m.tree = f.add(stepPlace, unix.SYS_OPEN_TREE, unix.AT_FDCWD, path, flags).on(path)
		return
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	file := f.add(stepPlace, unix.SYS_OPENAT2, unix.AT_FDCWD, path, how, unix.SizeofOpenHow).on(path)
	seen := new(unix.Stat_t)
	look := f.add(stepPlace, unix.SYS_FSTAT, file, seen).on(path)
	look.seen, look.judged = seen, &m.stat
	m.tree = f.add(stepPlace, unix.SYS_OPEN_TREE, file, "", flags|unix.AT_EMPTY_PATH).on(path)
	f.add(stepPlace, unix.SYS_CLOSE, file)
}

// restrict sets a mount's flags to the access.
func (f *plan) restrict(tree *call, access Access, device bool) {
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !device {
		attributes.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if access&Write == 0 {
		attributes.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if access&Execute == 0 {
		attributes.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	f.add(stepPlace, unix.SYS_MOUNT_SETATTR, tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attributes, mountAttrSize)
}

// attach mounts a tree under its name in the new root, which is the current directory.
// It follows no link: a guest may have made one.
func (f *plan) attach(tree *call, name string) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	target := f.add(stepRoot, unix.SYS_OPENAT2, unix.AT_FDCWD, cmp.Or(strings.TrimPrefix(name, "/"), "."), how, unix.SizeofOpenHow).on(name)
	f.add(stepRoot, unix.SYS_MOVE_MOUNT, tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH).on(name)
	f.add(stepRoot, unix.SYS_CLOSE, target)
	f.add(stepRoot, unix.SYS_CLOSE, tree)
}

// tree is the new root as far as it has been made.
type tree struct {
	f      *plan
	made   map[string]bool
	places []string // directories that are mounted
}

// holds reports whether a name is inside a mounted place, where nothing of ours is made.
func (t *tree) holds(name string) bool {
	return slices.ContainsFunc(t.places, func(place string) bool { return name != place && within(name, place) })
}

// pin mounts a directory inside a place, and its parents there, on themselves. A mount
// point can't be renamed or removed, so a guest can't move a hidden directory away.
func (t *tree) pin(name string) {
	if !t.holds(name) || t.made[name] {
		return
	}
	t.pin(filepath.Dir(name))
	t.made[name] = true
	here := t.f.add(stepRoot, unix.SYS_OPEN_TREE, unix.AT_FDCWD, name[1:], unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW).on(name)
	t.f.attach(here, name)
}

func (t *tree) directory(name string) {
	t.make(name, unix.SYS_MKDIRAT, unix.AT_FDCWD, name[1:], 0o755)
}

func (t *tree) file(name string) {
	t.make(name, unix.SYS_MKNODAT, unix.AT_FDCWD, name[1:], unix.S_IFREG|0o444, 0)
}

func (t *tree) link(to, name string) {
	t.make(name, unix.SYS_SYMLINKAT, to, unix.AT_FDCWD, name[1:])
}

// make makes a name by a call, after its parent directories.
func (t *tree) make(name string, number uintptr, args ...any) {
	if t.made[name] {
		return
	}
	t.made[name] = true
	t.directory(filepath.Dir(name))
	t.f.add(stepRoot, number, args...).on(name)
}

// pathOf is the current path of an open file.
func pathOf(file *os.File) (string, error) {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(file.Fd())))
	if err != nil {
		return "", fmt.Errorf("find where %s is: %w", file.Name(), err)
	}
	if !filepath.IsAbs(path) { // a pipe, say
		return "", fmt.Errorf("%s is no file or directory with a path: %s", file.Name(), path)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil || stat.Nlink == 0 {
		return "", fmt.Errorf("%s: %w", file.Name(), ErrReplaced)
	}
	return path, nil
}
