package doctor

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// installed is a daemon of another user that told everything, seen by a stranger.
func installed() Facts {
	return Facts{
		Caller: Caller{UID: stranger, Groups: []Group{{stranger, "people"}}, Variables: []string{"HOME", "PATH"}},
		Daemon: &Daemon{PID: 1, UID: another, Told: &Told{
			ID: "dmn_1", Mode: ModeIsolated, Operators: []uint32{another, 0}, AgentGroups: []int{60000}, Proofs: []string{"passphrase"},
			Backend: "file", Rollback: "generation file /elsewhere/generation", GenerationFile: "/elsewhere/generation",
		}},
	}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*Facts)
		want string
		v    Verdict
	}{
		{"isolated", func(*Facts) {}, ModeIsolated, Solved},
		{"isolated, as the agents' user", func(f *Facts) { f.Daemon.Told, f.Daemon.Refused = nil, "permission denied" }, ModeIsolated, Solved},
		{"the daemon says so", func(f *Facts) { f.Daemon.Told.Mode = ModeSame }, ModeSame, NotSolved},
		{"the same user, and nobody tells", func(f *Facts) { f.Daemon.Told, f.Daemon.UID = nil, stranger }, ModeSame, NotSolved},
		{"a person who may become anybody", func(f *Facts) { f.Caller.Groups = []Group{{27, "sudo"}} }, ModeShared, Partial},
		{"nobody there", func(f *Facts) { f.Daemon, f.Missing = nil, "there is no socket" }, ModeUnknown, Unseen},
		{"root, and nobody tells", func(f *Facts) { f.Caller.UID, f.Daemon.Told = 0, nil }, ModeUnknown, Unseen},
	} {
		f := installed()
		c.edit(&f)
		r := examine(t, f, t.TempDir())
		if got := found(t, r, "mode"); r.Mode != c.want || got.Verdict != c.v {
			t.Errorf("%s: mode %s, %s", c.name, r.Mode, got.Verdict)
		}
		if isolated := !strings.HasPrefix(r.Still, "NOT ISOLATED"); isolated == (c.want == ModeSame) {
			t.Errorf("%s: %s", c.name, r.Still)
		}
	}
}

// TestVerdicts: one change of the facts, and what becomes of one check.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		id   string
		edit func(*Facts)
		v    Verdict
		text string
	}{
		{"user", func(*Facts) {}, Solved, "23457"},
		{"user", func(f *Facts) { f.Daemon.UID = 0 }, Partial, "runs as root"},
		{"user", func(f *Facts) { f.Daemon.Told.AgentUsers = []uint32{another} }, NotSolved, "23457"},
		{"user", func(f *Facts) { f.Caller.UID = another }, Solved, "the daemon's own user"},
		{"operator-socket", func(f *Facts) { f.Caller.UID = another }, Solved, "as an operator"},
		{"vault-read", func(f *Facts) { f.Caller.UID, f.Places.Vault = another, os.Args[0] }, Unseen, "no agent is"},
		{"operator-socket", func(f *Facts) { f.Daemon.Told, f.Daemon.Refused = nil, "permission denied" }, Solved, "refused: permission denied"},
		{"operator-socket", func(*Facts) {}, Partial, "wants a proof"},
		{"port-owner", func(*Facts) {}, Solved, "no port"},
		{"port-owner", func(f *Facts) { f.Port = 7317 }, Unseen, "does not show"},
		{"port-owner", func(f *Facts) { f.Port, f.PortOwners = 7317, owned(another) }, Solved, "belongs to the daemon's user"},
		{"port-owner", func(f *Facts) { f.Port, f.PortOwners = 7317, owned() }, Solved, "nobody listens"},
		{"port-owner", func(f *Facts) { f.Port, f.PortOwners = 7317, owned(another, 777) }, NotSolved, "user 777 listens on port 7317"},
		{"port-owner", func(f *Facts) { f.Port, f.PortOwners, f.Daemon = 7317, owned(777), nil }, NotSolved, "user 777"},
		{"port-owner", func(f *Facts) {
			f.Port, f.PortOwners = 7317, func(int) ([]uint32, error) { return nil, errors.New("no") }
		}, Unseen, "does not show"},
		{"socket-owner", func(f *Facts) { f.Places.AgentSocket = "/nowhere" }, Unseen, "/nowhere"},
		{"groups", func(*Facts) {}, Solved, "no group"},
		{"groups", func(f *Facts) { f.Caller.Groups = []Group{{1, "lxd"}, {2, "docker"}} }, NotSolved, "your user is in docker, lxd"},
		{"groups", func(f *Facts) { f.Caller.UID = 0 }, Unseen, "you are root"},
		{"groups", func(f *Facts) {
			f.Caller.UID, f.Daemon.Told.AgentUsers = 0, []uint32{stranger}
			f.Daemon.Told.AgentGroupsOf = func(uint32) []Group { return []Group{{1, "wheel"}} }
		}, NotSolved, "the agents' user 23456 is in wheel"},
		{"caller-environment", func(*Facts) {}, Solved, "no variable"},
		{"caller-environment", func(f *Facts) {
			f.Caller.Variables = []string{"https_proxy", "PATH", "LD_PRELOAD", "CHATELAINE_RUNTIME"}
		}, Partial, "CHATELAINE_RUNTIME, LD_PRELOAD, https_proxy"},
		{"daemon-environment", func(*Facts) {}, Solved, "none of these"},
		{"daemon-environment", func(f *Facts) { f.Daemon.Told.Ignored = []string{"GODEBUG"} }, Partial, "GODEBUG"},
		{"proofs", func(*Facts) {}, Partial, "passphrase decides"},
		{"proofs", func(f *Facts) { f.Daemon.Told.Proofs = []string{"passkey"} }, Solved, "passkey"},
		{"proofs", func(f *Facts) { f.Daemon.Told.Proofs = []string{"passkey", "passphrase"} }, Partial, "passphrase decides"},
		{"proofs", func(f *Facts) { f.Daemon.Told.Proofs = nil }, Unseen, "does not tell"},
		{"proofs", func(f *Facts) { f.Daemon.Told = nil }, Unseen, "refused"},
		{"unattended", func(*Facts) {}, Solved, "only a person"},
		{"unattended", func(f *Facts) { f.Daemon.Told.Slots = []Slot{{"credential", "1f"}} }, Partial, "credential 1f"},
		{"unattended", func(f *Facts) { f.Daemon.Told.Slots = []Slot{{"credential", "1f"}, {"keychain", "2e"}} }, NotSolved, "keychain 2e"},
		{"rollback", func(f *Facts) { f.Daemon.Told.Rollback = "not detectable: no second generation counter" }, Partial, "not detectable"},
		{"rollback", func(f *Facts) {
			f.Daemon.Told.Mode, f.Daemon.Told.Rollback = ModeSame, "not detectable: no second generation counter"
		}, NotSolved, "not detectable"},
		{"rollback", func(f *Facts) { f.Daemon.Told.Rollback, f.Daemon.Told.GenerationFile = "OS keychain", "" }, Partial, "keychain back too"},
		{"disk", func(f *Facts) { f.Daemon.Told.Latched = true }, NotSolved, "cannot be written"},
		{"disk", func(*Facts) {}, Unseen, "not known"},
		{"disk", func(f *Facts) { f.Places.State = "/nowhere" }, Unseen, "/nowhere"},
		{"vault-read", func(f *Facts) { f.Places.Vault = "/nowhere/vault" }, Unseen, "no vault"},
		{"vault-read", func(f *Facts) { f.Caller.UID, f.Places.Vault = 0, "/nowhere/vault" }, Unseen, "you are root"},
		{"vault-read", func(f *Facts) { f.Places.Vault = os.Args[0] }, Partial, "weakest passphrase"},
		{"path-helpers", func(*Facts) {}, Solved, "no program"},
		{"path-helpers", func(f *Facts) { f.Daemon.Told.Programs = []string{"/", "/nowhere/notify"} }, Unseen, "/nowhere"},
		{"path-helpers", func(f *Facts) { f.Daemon.Told.Programs = []string{"/", "/"} }, Solved, "2 files"},
		{"path-helpers", func(f *Facts) { f.Daemon.Told = nil }, Unseen, "refused"},
		{"path-unit", func(*Facts) {}, Unseen, "no unit"},
		{"path-program", func(*Facts) {}, Unseen, "not known"},
	} {
		f := installed()
		c.edit(&f)
		got := found(t, examine(t, f, t.TempDir()), c.id)
		want(t, got, c.v, c.text)
	}
}

func owned(uids ...uint32) func(int) ([]uint32, error) {
	return func(int) ([]uint32, error) { return uids, nil }
}

// TestNothingKnown: without a daemon everything that only it knows is told as not
// looked at, never as well.
func TestNothingKnown(t *testing.T) {
	r := examine(t, Facts{Caller: Caller{UID: stranger}, Missing: "there is no socket"}, t.TempDir())
	for _, id := range []string{"mode", "user", "operator-socket", "socket-owner", "vault-read", "proofs", "unattended", "rollback", "daemon-environment", "disk"} {
		want(t, found(t, r, id), Unseen, "")
	}
	if !strings.Contains(r.Still, "were not looked at") {
		t.Errorf("the last line: %s", r.Still)
	}
}

// TestNames: each check has its own name, in the report's order, and each finding
// is one of them.
func TestNames(t *testing.T) {
	r := examine(t, installed(), t.TempDir())
	ids := IDs()
	if len(ids) != len(r.Findings) {
		t.Fatalf("%d names, %d findings", len(ids), len(r.Findings))
	}
	seen := map[string]bool{}
	for i, f := range r.Findings {
		if f.ID != ids[i] || seen[f.ID] {
			t.Errorf("finding %d is %s, the name %s", i, f.ID, ids[i])
		}
		seen[f.ID] = true
		if f.Attack == "" || f.Detail == "" {
			t.Errorf("%s says nothing", f.ID)
		}
	}
	n := r.Counts()
	if n[Solved]+n[Partial]+n[NotSolved]+n[Unseen] != len(ids) {
		t.Errorf("the counts are %v", n)
	}
}

// TestStill: the last line names each thing once, in the order of the checks.
func TestStill(t *testing.T) {
	e := &exam{Facts: Facts{Caller: Caller{UID: stranger}}, mode: ModeSame}
	got := e.still([]Finding{Finding{}.Still("do this"), {Verdict: Unseen}, Finding{}.Still("do that"), Finding{}.Still("do this")})
	if got != "NOT ISOLATED: a hostile program of your user can still do this and do that; one thing was not looked at." {
		t.Error(got)
	}
	e.mode = ModeIsolated
	if got := e.still(nil); got != "A hostile program of your user can still ask for what contracts and approvals permit, and no more that was found." {
		t.Error(got)
	}
}

func TestKeychainVerdicts(t *testing.T) {
	e := &exam{Facts: installed()}
	for _, c := range []struct {
		items []keychainItem
		v     Verdict
		text  string
	}{
		{nil, Solved, "nothing of ours"},
		{[]keychainItem{{"a", false, true}, {"b", false, true}}, Solved, "2 items are readable without a prompt, and ciphertext"},
		{[]keychainItem{{"a", false, true}, {"x", true, false}}, NotSolved, "opens the vault"},
		{[]keychainItem{{"a", false, true}, {"deploy-bot", false, false}}, NotSolved, "not sealed: deploy-bot"},
	} {
		want(t, e.keychainFinding(c.items, "here"), c.v, c.text)
	}
}

// TestPageNamesEveryCheck: the page that people look a name up on has it.
func TestPageNamesEveryCheck(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "## What a hostile program could do here")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, id := range IDs() {
		if !strings.Contains(section, "`"+id+"`") {
			t.Errorf("docs/operations.md does not name %s", id)
		}
	}
}

// A socket of a service that does anything for whoever writes to it is a way to
// root, whatever the groups say.
func TestDoorsToRoot(t *testing.T) {
	door := write(t, t.TempDir()+"/docker.sock", "")
	e := &exam{Facts: installed(), doors: []string{"/nowhere", door}}
	e.Caller.UID = os.Getuid()
	got := e.groups()
	if e.isRoot() { // who is root anyway is asked nothing
		want(t, got, Unseen, "you are root")
		return
	}
	want(t, got, NotSolved, door)
}
