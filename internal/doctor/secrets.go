package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// proofs: a passphrase is a proof that somebody can watch being typed.
func (e *exam) proofs() Finding {
	const id, attack = "proofs", "decide with somebody else's proof"
	t, f := e.told(id, attack)
	if f != nil {
		return *f
	}
	var strong []string
	for _, p := range t.Proofs {
		if p != "passphrase" {
			strong = append(strong, p)
		}
	}
	switch {
	case len(t.Proofs) == 0:
		return unseen(id, attack, "the daemon does not tell which proofs it takes", "")
	case len(strong) == len(t.Proofs):
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "decisions want " + strings.Join(strong, " or ")}
	}
	out := Finding{ID: id, Attack: attack, Verdict: Partial,
		Detail: "the operator passphrase decides: who sees it typed, or takes the place of the terminal or of chatelaine, has it",
		WayOut: "type it only where no agent's program runs as you; hardware keys come with a later release"}
	if e.mode == ModeIsolated {
		return out
	}
	return out.Still("watch a terminal while a passphrase is typed")
}

// unattended names what opens the vault without a person.
func (e *exam) unattended() Finding {
	const id, attack = "unattended", "open the vault without a person"
	t, f := e.told(id, attack)
	if f != nil {
		return *f
	}
	if len(t.Slots) == 0 {
		return Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "only a person opens it"}
	}
	var names []string
	keychain := false
	for _, s := range t.Slots {
		names = append(names, s.Kind+" "+s.ID)
		keychain = keychain || s.Kind == "keychain"
	}
	out := Finding{ID: id, Attack: attack, Verdict: Partial, Detail: "slots that need nobody: " + strings.Join(names, ", "),
		WayOut: "chatelaine vault remove-slot SLOT, if a person can be there at each start"}
	if keychain {
		out.Verdict = NotSolved
		out.Detail += "; any process of the daemon's user can read the keychain"
		if e.mode == ModeSame {
			return out.Still("open a copy of the vault with what lies in the keychain")
		}
		return out
	}
	out.Detail += "; whoever can start the unit has an open vault"
	return out
}

// rollback looks for the second generation counter, and whether who can put back
// the vault can put that back too.
func (e *exam) rollback() Finding {
	const id, attack = "rollback", "put an older vault back"
	t, f := e.told(id, attack)
	if f != nil {
		return *f
	}
	out := Finding{ID: id, Attack: attack}
	const way = "set vault.generation_file to a path on another file system that agents cannot write"
	switch {
	case strings.HasPrefix(t.Rollback, "not detectable"):
		out.Verdict, out.Detail, out.WayOut = NotSolved, t.Rollback, way
		if e.mode == ModeIsolated {
			out.Verdict, out.Detail = Partial, t.Rollback+"; only the daemon's user and root can write where the vault lies"
			return out
		}
		return out.Still("put an older vault back without a trace")
	case t.GenerationFile == "":
		out.Verdict, out.WayOut = Partial, way
		out.Detail = t.Rollback + ": who can put the vault back can often put the keychain back too"
		return out
	}
	if weak := e.weakPlace(t.GenerationFile, allowDaemon); weak.reason != "" {
		out.Verdict, out.Detail, out.WayOut = NotSolved, weak.String(), way
		return out.Still("put an older vault and its counter back")
	}
	if same, known := sameFileSystem(e.Places.State, filepath.Dir(t.GenerationFile)); !known || same {
		out.Verdict, out.WayOut = Partial, way
		out.Detail = t.GenerationFile + " lies on the file system of the vault: a snapshot puts both back"
		return out
	}
	out.Verdict, out.Detail = Solved, "a second counter lies on another file system: "+t.GenerationFile
	return out
}

func sameFileSystem(a, b string) (same, known bool) {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	if err != nil || err2 != nil || sysStat(x) == nil || sysStat(y) == nil {
		return false, false
	}
	return sysStat(x).Dev == sysStat(y).Dev, true
}

// Room on the disk of the state folder: below the first the record may stop
// within hours, below the second within minutes.
const (
	lowDisk  = 1 << 30
	fullDisk = 64 << 20
)

func (e *exam) disk() Finding {
	const id, attack = "disk", "fill the disk, so that nothing can be recorded"
	if e.Daemon != nil && e.Daemon.Told != nil && e.Daemon.Told.Latched {
		f := Finding{ID: id, Attack: attack, Verdict: NotSolved, Detail: "the record cannot be written; nothing is sent any more", WayOut: "free the disk and restart the daemon"}
		return f.Still("keep every call from being made")
	}
	if e.Places.State == "" {
		return unseen(id, attack, "the state folder is not known", startIt)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(e.Places.State, &fs); err != nil {
		return unseen(id, attack, "the disk of "+e.Places.State+" cannot be asked", "name the state folder with --state")
	}
	free := uint64(fs.Bavail) * uint64(fs.Bsize)
	f := Finding{ID: id, Attack: attack, Verdict: Solved, Detail: "there is room, and what outcomes need is set aside"}
	switch {
	case free < fullDisk:
		f.Verdict, f.Detail = NotSolved, fmt.Sprintf("%d MiB are left on the disk of the state folder", free>>20)
		f = f.Still("keep every call from being made")
	case free < lowDisk:
		f.Verdict, f.Detail = Partial, fmt.Sprintf("%d MiB are left on the disk of the state folder", free>>20)
	}
	if f.Verdict != Solved {
		f.WayOut = "free the disk, or give the state folder one of its own"
	}
	if w := e.warning(); w != "" && f.Verdict == Solved {
		f.Verdict, f.Detail, f.WayOut = Partial, "the record warns: "+w, "chatelaine status; docs/operations.md, \"What to watch\""
	}
	return f
}

func (e *exam) warning() string {
	if e.Daemon == nil || e.Daemon.Told == nil {
		return ""
	}
	return e.Daemon.Told.Warning
}

// keychain looks whether an item of ours can be read without a prompt, and
// whether what is there is ciphertext.
func (e *exam) keychainFinding(items []keychainItem, where string) Finding {
	f := Finding{ID: keychainID, Attack: keychainAttack, Verdict: Solved}
	var slots, clear []string
	sealed := 0
	for _, it := range items {
		switch {
		case it.slot:
			slots = append(slots, it.name)
		case !it.sealed:
			clear = append(clear, it.name)
		default:
			sealed++
		}
	}
	slices.Sort(clear)
	switch {
	case len(clear) > 0:
		f.Verdict, f.Detail = NotSolved, "readable without a prompt, and not sealed: "+strings.Join(clear, ", ")
		f.WayOut = "store these identities anew with chatelaine identity put, and report this"
		return f.Still("read secrets out of the keychain")
	case len(slots) > 0:
		f.Verdict, f.Detail = NotSolved, "what opens the vault is readable without a prompt; "+plural(sealed, "other item is", "other items are")+" ciphertext"
		f.WayOut = "chatelaine vault remove-slot SLOT, and then chatelaine vault rotate-key"
		return f.Still("open a copy of the vault with what lies in the keychain")
	case sealed > 0:
		f.Detail = plural(sealed, "item is", "items are") + " readable without a prompt, and ciphertext"
	default:
		f.Detail = "nothing of ours is readable in " + where
	}
	return f
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

const (
	keychainID     = "keychain"
	keychainAttack = "read our items in the keychain"
)

// keychainItem is what was seen of one item; its bytes are gone already.
type keychainItem struct {
	name   string
	slot   bool // opens the vault
	sealed bool // no readable text
}
