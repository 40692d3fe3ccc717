package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

func (e *exam) modeFinding() Finding {
	f := Finding{ID: "mode", Attack: "be the user who runs the daemon or decides"}
	switch e.mode {
	case ModeIsolated:
		f.Verdict, f.Detail = Solved, "isolated: no user whom the operator socket lets in is an agent's"
		if e.Daemon.Told == nil {
			f.Detail = "isolated: the daemon is another user's, and its operator socket is shut for you"
		}
	case ModeShared:
		f.Verdict, f.Detail = Partial, "shared operator: the daemon has its own user, and yours may become it"
		f.WayOut = "let agents run as a user of their own that may not become the daemon's or root"
		return f.Still("act as you where you decide")
	case ModeSame:
		f.Verdict, f.Detail = NotSolved, "same-user: agents and daemon share a user, which is no boundary"
		f.WayOut = ownUser
	default:
		f.Verdict, f.Detail, f.WayOut = Unseen, "nobody tells for whom the daemon works", startIt
		if e.Daemon != nil {
			f.WayOut = asOwner
		}
	}
	return f
}

func (e *exam) user() Finding {
	const id, attack = "user", "share the daemon's user"
	uid, ok := e.daemonUID()
	if !ok {
		return unseen(id, attack, "the daemon's user is not known", startIt)
	}
	f := Finding{ID: id, Attack: attack, Detail: fmt.Sprintf("the daemon's user is %d, yours is %d", uid, e.Caller.UID)}
	switch {
	case uid == 0:
		f.Verdict, f.WayOut = Partial, "give the daemon a user of its own: it needs no right of root"
		f.Detail += "; it runs as root, so a mistake in it is a mistake of root"
	case e.enemy(uid):
		f.Verdict, f.WayOut = NotSolved, ownUser
	case uid == e.Caller.UID:
		f.Verdict, f.Detail = Solved, "you ask as the daemon's own user, and no agent is that user"
	default:
		f.Verdict = Solved
	}
	return f
}

func (e *exam) operatorSocket() Finding {
	const id, attack = "operator-socket", "decide over the operator socket"
	if e.Daemon == nil {
		return unseen(id, attack, "no daemon answers: "+e.Missing, startIt)
	}
	f := Finding{ID: id, Attack: attack}
	switch {
	case e.Daemon.Told == nil:
		f.Verdict, f.Detail = Solved, "refused: "+e.Daemon.Refused
	case e.enemy(e.Caller.UID):
		f.Verdict, f.Detail = Partial, "it lets you in; what widens wants a proof, and denying, revoking and locking do not"
		f.WayOut = ownUser
		return f.Still("deny, revoke and lock in your place")
	default:
		f.Verdict, f.Detail = Solved, "it lets you in as an operator, and no agent's user"
	}
	return f
}

// socketOwner looks at the files of the sockets: whoever owns one can put
// another in its place.
func (e *exam) socketOwner() Finding {
	const id, attack = "socket-owner", "listen where the daemon should"
	if e.Daemon == nil {
		return unseen(id, attack, "no daemon answers: "+e.Missing, startIt)
	}
	f := Finding{ID: id, Attack: attack, Verdict: Solved, Detail: fmt.Sprintf("both sockets belong to the daemon's user %d", e.Daemon.UID)}
	for _, path := range []string{e.Places.AgentSocket, e.Places.OperatorSocket} {
		uid, ok := ownerOf(path)
		switch {
		case !ok:
			return unseen(id, attack, path+" cannot be looked at", "ask again as a user who may")
		case uid != 0 && uid != e.Daemon.UID:
			f.Verdict, f.Detail = NotSolved, fmt.Sprintf("%s belongs to user %d, and the daemon to %d", path, uid, e.Daemon.UID)
			f.WayOut = "stop whoever made it, and make the runtime folder the daemon's own"
			return f.Still("answer in the daemon's place")
		}
	}
	if fi, err := os.Stat(e.Places.OperatorSocket); err == nil && fi.Mode().Perm()&0o077 != 0 {
		f.Verdict, f.Detail = NotSolved, fmt.Sprintf("the operator socket has mode %04o; it should be 0600", fi.Mode().Perm())
		f.WayOut = "restart the daemon, which sets it"
	}
	return f
}

// portOwner asks who listens on the agents' port. Where the daemon does not, a
// token could go to a stranger.
func (e *exam) portOwner() Finding {
	const id, attack = "port-owner", "sit on the agents' port"
	if e.Port == 0 {
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "no port is served"}
	}
	if e.PortOwners == nil {
		return unseen(id, attack, "this system does not show the owner of a port", "use the Unix socket")
	}
	uids, err := e.PortOwners(e.Port)
	if err != nil {
		return unseen(id, attack, "this system does not show the owner of a port", "use the Unix socket")
	}
	uid, known := e.daemonUID()
	for _, u := range uids {
		if e.Daemon == nil || known && int(u) != uid && u != 0 {
			f := Finding{ID: id, Attack: attack, Verdict: NotSolved, WayOut: "stop that program, or choose another port; agents should use the Unix socket",
				Detail: fmt.Sprintf("a program of user %d listens on port %d, and it is not this daemon", u, e.Port)}
			return f.Still("take the token of an agent that does not look who listens")
		}
	}
	if len(uids) == 0 {
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: fmt.Sprintf("nobody listens on port %d", e.Port)}
	}
	return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: fmt.Sprintf("port %d belongs to the daemon's user", e.Port)}
}

// vaultRead tries to copy the vault.
func (e *exam) vaultRead() Finding {
	const id, attack = "vault-read", "copy the vault and guess its passphrase elsewhere"
	switch {
	case e.Places.Vault == "":
		return unseen(id, attack, "the state folder is not known", startIt)
	case e.isRoot():
		return unseen(id, attack, rootTries, asAgent)
	case e.bystander():
		return unseen(id, attack, ownTries, asAgent)
	}
	err := opened(e.Places.Vault)
	switch {
	case err == nil:
		f := Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "you can read the file; what is in it is sealed, and as strong as its weakest passphrase"}
		f.WayOut = "a long passphrase for the vault; " + ownUser
		return f.Still("copy the vault and guess at its passphrase")
	case refusedByMode(err):
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "refused: permission denied"}
	case errors.Is(err, fs.ErrNotExist):
		return unseen(id, attack, "there is no vault at "+e.Places.Vault, "name the state folder with --state")
	}
	return unseen(id, attack, "the file could not be opened", "")
}

// rootGroups give their members the machine: by a password of their own, by a
// container with the disk in it, by the raw disk.
var rootGroups = []string{"root", "sudo", "wheel", "admin", "docker", "podman", "lxd", "lxc", "incus", "incus-admin", "libvirt", "disk", "shadow"}

// becomesRoot names the caller's groups that are as good as root.
func (e *exam) becomesRoot() string { return strings.Join(asGoodAsRoot(e.Caller.Groups), ", ") }

func asGoodAsRoot(groups []Group) []string {
	var out []string
	for _, g := range groups {
		if slices.Contains(rootGroups, g.Name) {
			out = append(out, g.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rootSockets are doors of services that run anything as root for whoever may
// write to them.
var rootSockets = []string{
	"/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
	"/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket", "/run/libvirt/libvirt-sock",
}

func (e *exam) groups() Finding {
	const id, attack = "groups", "become root by a group"
	f := Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "your user is in no group that is as good as root"}
	for _, path := range e.doors {
		if e.mayWrite(path) {
			f.Verdict, f.Detail, f.WayOut = NotSolved, "your user may write to "+path+", which is as good as root", "run agents as a user who may not"
			return f.Still("become root by way of " + path + ", and then do anything")
		}
	}
	who, in := "your user", e.becomesRoot()
	if e.isRoot() {
		in = ""
		f.Detail = "no agent's user is in a group that is as good as root"
		if e.Daemon == nil || e.Daemon.Told == nil || e.Daemon.Told.AgentGroupsOf == nil {
			return unseen(id, attack, "you are root, and nobody tells which users are agents", asAgent)
		}
	}
	if e.Daemon != nil && e.Daemon.Told != nil && e.Daemon.Told.AgentGroupsOf != nil {
		for _, uid := range e.Daemon.Told.AgentUsers {
			if g := asGoodAsRoot(e.groupsOf(int(uid))); in == "" && uid != 0 && len(g) > 0 {
				who, in = fmt.Sprintf("the agents' user %d", uid), strings.Join(g, ", ")
			}
		}
	}
	if in == "" {
		return f
	}
	f.Verdict, f.Detail = NotSolved, who+" is in "+in+", which is as good as root"
	f.WayOut = "run agents as a user who is in none of these groups"
	return f.Still("become root by way of " + in + ", and then do anything")
}

// loaders steer what a program loads or whom it trusts; places lead the program
// to another daemon.
var (
	loaders = []string{"LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "GODEBUG", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE",
		"RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH"}
	leading = []string{"CHATELAINE_CONFIG", "CHATELAINE_STATE", "CHATELAINE_RUNTIME", "CHATELAINE_DAEMON_USER", "CHATELAINE_AGENT_URL"}
)

func (e *exam) callerEnvironment() Finding {
	f := Finding{ID: "caller-environment", Attack: "bend your own chatelaine by its environment", Verdict: Solved,
		Detail: "no variable steers what chatelaine loads, trusts or talks to"}
	var bad []string
	for _, name := range e.Caller.Variables {
		upper := strings.ToUpper(name)
		if slices.Contains(loaders, upper) || slices.Contains(leading, upper) || strings.HasSuffix(upper, "_PROXY") {
			bad = append(bad, name)
		}
	}
	if len(bad) == 0 {
		return f
	}
	slices.Sort(bad)
	f.Verdict, f.Detail = Partial, "set in your environment: "+strings.Join(bad, ", ")
	f.WayOut = "make sure that you set them; a program that writes your shell's start-up files can lead you to a daemon of its own"
	return f
}

func (e *exam) daemonEnvironment() Finding {
	const id, attack = "daemon-environment", "bend the daemon by its environment"
	t, f := e.told(id, attack)
	if f != nil {
		return *f
	}
	if len(t.Ignored) == 0 {
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "it was started with none of these variables, and would leave them out"}
	}
	return Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "it was started with, and left out: " + strings.Join(t.Ignored, ", "),
		WayOut: "find out who sets them, and start the daemon without"}
}

// sysStat is the system's own view of a file.
func sysStat(fi fs.FileInfo) *syscall.Stat_t {
	st, _ := fi.Sys().(*syscall.Stat_t)
	return st
}
