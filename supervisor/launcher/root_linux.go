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

// The root of a child's own is a small file system in memory, read-only, in which
// nothing is but the child's places, mounted under their names. It is made in this
// order, each step while the one before it still can be:
//
//	become nobody     the capabilities to mount come with the user namespace
//	find the places   while the machine's tree is there; what was judged is compared
//	make the root     directories, links and places, each found without following a link
//	enter it          and let go of the machine's tree
//	make the network  sockets that we keep are opened inside
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

// ownFiles are what a process sees of itself; the first is a directory.
var ownFiles = []string{"/proc/self/fd", "/proc/self/maps", "/proc/self/statm"}

// through is a name with the links of the root followed.
func (w *Wall) through(name string) string {
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

// within says that a name is a directory's, or of something in it.
func within(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}

// mounted is a place that has been found.
type mounted struct {
	Place
	now    string // where it is
	stat   unix.Stat_t
	mapped bool  // it is to be the other user's, if there is one
	tree   *call // gives its mount
}

func (m *mounted) is(kind uint32) bool { return m.stat.Mode&unix.S_IFMT == kind }

// collect gives the places of a child whose executable is path, those of its
// runtime included, the outer ones first.
func (f *forked) collect(w *Wall, path string) (found []mounted, err error) {
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
		if i, again := seen[p.name()]; again { // the wider access holds
			found[i].Access |= p.Access
			continue
		}
		if p.Optional && slices.ContainsFunc(w.Places, func(o Place) bool { return !o.Optional && o.name() != p.name() && within(p.name(), o.name()) }) {
			continue // it is there, whatever it is
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
func (f *forked) root(w *Wall, path string, found []mounted) {
	for i := range found {
		if found[i].tree == nil {
			f.open(&found[i])
		}
		f.restrict(found[i].tree, found[i].Access, found[i].is(unix.S_IFCHR))
	}

	// Of /proc a process sees itself: its descriptors, its memory (where the C library
	// finds its stack) and how much of it there is.
	own := map[string]*call{}
	for _, name := range ownFiles {
		own[name] = f.add(stepPlace, unix.SYS_OPEN_TREE, unix.AT_FDCWD, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC).on(name)
	}

	f.add(stepRoot, unix.SYS_MOUNT, "tmpfs", "/proc", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4m,mode=0755")
	f.add(stepRoot, unix.SYS_CHDIR, "/proc")
	mask := f.add(stepRoot, unix.SYS_UMASK, 0) // ours says nothing of what others may do in the child's root
	made := &tree{f: f, made: map[string]bool{"/": true}}
	for _, name := range slices.Sorted(maps.Keys(w.Links)) {
		at := w.through(name)
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
		// Programs look at more, and each at its own. A container may not let it be
		// mounted; then they have what the first process sees of itself.
		f.add(stepRoot, unix.SYS_MOUNT, "proc", "proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "subset=pid").fine = anyError
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

// look finds out what and where the place is now.
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

// open opens a place, which has to be what was judged.
func (f *forked) open(m *mounted) {
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

// restrict takes away what the access does not name.
func (f *forked) restrict(tree *call, access Access, device bool) {
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

// attach mounts what was found under its name in the root that is the current
// directory. No link is followed on the way there: a guest may have made one.
func (f *forked) attach(tree *call, name string) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	target := f.add(stepRoot, unix.SYS_OPENAT2, unix.AT_FDCWD, cmp.Or(strings.TrimPrefix(name, "/"), "."), how, unix.SizeofOpenHow).on(name)
	f.add(stepRoot, unix.SYS_MOVE_MOUNT, tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH).on(name)
	f.add(stepRoot, unix.SYS_CLOSE, target)
	f.add(stepRoot, unix.SYS_CLOSE, tree)
}

// tree is what has been made in a child's root.
type tree struct {
	f      *forked
	made   map[string]bool
	places []string // directories that are mounted
}

// holds says that a name is in a place, where we make nothing.
func (t *tree) holds(name string) bool {
	return slices.ContainsFunc(t.places, func(place string) bool { return name != place && within(name, place) })
}

// pin mounts a directory, and those that it is in, on itself as far as they are in
// a place: what is mounted on can't be renamed or removed, so that the names that
// lead to what is hidden stay those that we use.
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

// make makes a name by a call, and the directories that it is in.
func (t *tree) make(name string, number uintptr, args ...any) {
	if t.made[name] {
		return
	}
	t.made[name] = true
	t.directory(filepath.Dir(name))
	t.f.add(stepRoot, number, args...).on(name)
}

// pathOf is where an open file is now.
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
