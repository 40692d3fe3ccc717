package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// owners says who may own a path besides root.
type owners uint8

const (
	rootOnly    owners = iota // programs, settings, contracts: not even the daemon may change them
	allowDaemon               // what the daemon writes itself
)

// place is one thing whose path is looked at.
type place struct {
	id, attack, still string
	owners            owners
	path              func(*exam) string
	tree              bool // what lies in the folder counts too
}

var places = []place{
	{"path-program", "replace the daemon's program", "replace the daemon's program", rootOnly, (*exam).program, false},
	{"path-unit", "replace the unit that starts it", "replace the unit that starts it", rootOnly, (*exam).unit, false},
	{"path-settings", "replace chatelaine.yaml", "replace the settings", rootOnly, func(e *exam) string { return e.Places.Settings }, false},
	{"path-contracts", "replace a contract", "replace contracts", rootOnly, func(e *exam) string { return e.Places.Contracts }, true},
	{"path-site", "replace targets.yaml", "replace the site file", rootOnly, func(e *exam) string { return e.Places.Site }, false},
	{"path-vault", "replace the vault, the ledger or the record", "destroy or put back vault, ledger and record", allowDaemon, func(e *exam) string { return e.Places.Vault }, false},
	{"path-sockets", "replace a socket", "put a socket of its own in place of the daemon's", allowDaemon, func(e *exam) string { return e.Places.Runtime }, false},
	{"path-client", "replace your own chatelaine", "replace the program that you type passphrases into", rootOnly, func(e *exam) string { return e.Caller.Program }, false},
}

func pathIDs() []string {
	var out []string
	for _, p := range places {
		out = append(out, p.id)
	}
	return append(out, helpersID)
}

func (e *exam) program() string {
	if e.Daemon != nil && e.Daemon.Told != nil && e.Daemon.Told.Program != "" {
		return e.Daemon.Told.Program
	}
	return e.Places.Program
}

// unit is the first unit that is there.
func (e *exam) unit() string {
	for _, u := range e.Places.Units {
		if exists(u) {
			return u
		}
	}
	return ""
}

func (e *exam) paths() []Finding {
	var out []Finding
	for _, p := range places {
		out = append(out, e.pathFinding(p))
	}
	return append(out, e.helpers())
}

const helpersID = "path-helpers"

// helpers looks at the programs that the daemon runs: notify, alert, and those that
// it fetches secrets from.
func (e *exam) helpers() Finding {
	const attack = "replace a program that the daemon runs"
	t, f := e.told(helpersID, attack)
	if f != nil {
		return *f
	}
	out := Finding{ID: helpersID, Attack: attack, Verdict: Solved, Detail: "the settings name no program"}
	for _, path := range t.Programs {
		p := place{id: helpersID, attack: attack, still: "have a program of its own run by the daemon", owners: rootOnly, path: func(*exam) string { return path }}
		if out = e.pathFinding(p); out.Verdict != Solved {
			return out
		}
	}
	if n := len(t.Programs); n > 1 {
		out.Detail = fmt.Sprintf("%d files: neither you nor others can write to them or to a folder above", n)
	}
	return out
}

func (e *exam) pathFinding(p place) Finding {
	path := p.path(e)
	if path == "" {
		why, way := "it is not known where it lies", startIt
		if p.id == "path-unit" {
			why, way = "no unit was found: the daemon is started by hand", theUnit
		}
		return unseen(p.id, p.attack, why, way)
	}
	weak := e.weakPlace(path, p.owners)
	if weak.reason == "" && p.tree {
		weak = e.weakTree(path, p.owners)
	}
	if weak.missing {
		return unseen(p.id, p.attack, weak.String(), "ask again as a user who may look there")
	}
	f := Finding{ID: p.id, Attack: p.attack, Verdict: Solved, Detail: path + ": neither you nor others can write to it or to a folder above"}
	if weak.closed != "" {
		f.Detail = path + ": " + weak.closed + " is closed to you"
	}
	if e.bystander() {
		f.Detail = path + ": only root and the daemon can write to it and to the folders above"
	}
	if weak.reason == "" {
		return f
	}
	f.Verdict, f.Detail, f.WayOut = NotSolved, weak.String(), weak.way
	if weak.daemonOnly {
		f.Verdict = Partial
		return f
	}
	return f.Still(p.still)
}

// weakness is where somebody can change what a path leads to.
type weakness struct {
	where, reason, way string
	daemonOnly         bool   // only the daemon itself can
	missing            bool   // it could not be looked at
	closed             string // a folder that the caller may not pass, so nothing behind it is theirs to change
}

func (w weakness) String() string { return w.where + ": " + w.reason }

// maxLinks is how many links one path may have; the kernel takes 40.
const maxLinks = 40

// weakPlace follows a path from the root, each link too, and returns the first
// step that an enemy could change.
func (e *exam) weakPlace(path string, o owners) weakness {
	if !filepath.IsAbs(path) {
		return weakness{where: path, reason: "not a whole path", missing: true}
	}
	var daemonOnly weakness
	todo := split(path)
	at, links := "/", 0
	for w := e.weakStep(at, o); ; {
		if w.reason != "" && !w.daemonOnly {
			return w
		}
		if w.daemonOnly && daemonOnly.reason == "" {
			daemonOnly = w
		}
		if len(todo) == 0 {
			return daemonOnly
		}
		next := filepath.Join(at, todo[0])
		todo = todo[1:]
		fi, err := os.Lstat(next)
		if refusedByMode(err) && !e.isRoot() {
			daemonOnly.closed = at
			return daemonOnly
		}
		if err != nil {
			return weakness{where: next, reason: "cannot be looked at", missing: true}
		}
		w = e.weakStep(next, o)
		if fi.Mode().Type() != fs.ModeSymlink {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return weakness{where: next, reason: "a link that leads nowhere", missing: true}
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		todo = append(split(to), todo...)
	}
}

// split keeps "..": after a link it does not undo the step before it, and Join
// takes it back from where the walk really is.
func split(path string) []string {
	var out []string
	for _, s := range strings.Split(path, "/") {
		if s != "" && s != "." {
			out = append(out, s)
		}
	}
	return out
}

// maxTree bounds a look at a folder of contracts: the loader takes fewer.
const maxTree = 20_000

// weakTree looks at everything in a folder, links not followed.
func (e *exam) weakTree(root string, o owners) (found weakness) {
	n := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n++; n > maxTree {
			return fmt.Errorf("more than %d files", maxTree)
		}
		if w := e.weakStep(path, o); w.reason != "" {
			found = w
			return filepath.SkipAll
		}
		return nil
	})
	if err != nil && found.reason == "" {
		return weakness{where: root, reason: "cannot be read whole", missing: true}
	}
	return found
}

// weakStep judges one file, folder or link by owner and mode.
func (e *exam) weakStep(path string, o owners) weakness {
	fi, err := os.Lstat(path)
	if err != nil || sysStat(fi) == nil {
		return weakness{where: path, reason: "cannot be looked at", missing: true}
	}
	uid, gid, perm := int(sysStat(fi).Uid), int(sysStat(fi).Gid), fi.Mode().Perm()
	daemon, known := e.daemonUID()
	switch {
	case uid == 0:
	case e.enemy(uid):
		return weakness{where: path, reason: "belongs to " + e.name(uid), way: ownUser}
	case known && uid == daemon && o == rootOnly:
		return weakness{where: path, reason: fmt.Sprintf("belongs to the daemon's own user %d, whom a mistake in the daemon would let change it", uid),
			way: "give it to root (chown root), readable for the daemon", daemonOnly: true}
	case known && uid == daemon:
	default:
		return weakness{where: path, reason: "belongs to " + e.name(uid), way: "give it to root (chown root)"}
	}
	if fi.Mode().Type() == fs.ModeSymlink {
		return weakness{} // its mode says nothing; whoever owns it or its folder can change it
	}
	sticky := fi.IsDir() && fi.Mode()&fs.ModeSticky != 0 // entries are changed by their owners only, and those are looked at
	switch {
	case perm&0o002 != 0 && !sticky:
		return weakness{where: path, reason: fmt.Sprintf("anybody may write to it (mode %04o)", perm), way: "chmod o-w " + path}
	case perm&0o020 != 0 && gid != 0 && !sticky:
		return weakness{where: path, reason: fmt.Sprintf("the group %d may write to it (mode %04o)", gid, perm), way: "chmod g-w " + path}
	case e.mayWrite(path) && !sticky:
		return weakness{where: path, reason: "you may write to it (an access list?)", way: "take the right away: setfacl -b " + path}
	}
	return weakness{}
}

func (e *exam) name(uid int) string {
	switch {
	case uid == e.Caller.UID:
		return "your user"
	case e.agent(uid):
		return fmt.Sprintf("user %d, who is an agent's", uid)
	}
	return fmt.Sprintf("user %d", uid)
}

// mayWrite asks the kernel about the caller, which knows of access lists. Only
// where the caller is who the process is, and not root.
func (e *exam) mayWrite(path string) bool {
	return !e.bystander() && e.Caller.UID == os.Geteuid() &&
		unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil
}
