package doctor

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Facts are what the caller of Run knows. The zero value knows nothing, and then
// little is looked at.
type Facts struct {
	Caller  Caller
	Places  Places
	Daemon  *Daemon // nil where none was reached
	Missing string  // why Daemon is nil
	// Port is that of the agent listener over TCP, 0 where it is off or unknown;
	// PortOwners tells who listens there.
	Port       int
	PortOwners func(port int) (uids []uint32, err error)
}

// Caller is who asks.
type Caller struct {
	UID       int
	Groups    []Group  // that the process has
	Variables []string // names in its environment
	Program   string   // its own file
}

// Group is a group with its name, or its number where it has none.
type Group struct {
	GID  int
	Name string
}

// Places are files and folders of the installation, absolute; "" where unknown.
type Places struct {
	Config, Settings, Site, Contracts string
	State, Vault                      string
	Runtime                           string
	AgentSocket, OperatorSocket       string
	Program                           string   // chatelained, where the daemon does not tell it
	Units                             []string // where a unit would be
}

// Daemon is one that answered.
type Daemon struct {
	PID, UID int   // as the socket's other end has them; PID 0: not known
	Told     *Told // nil where the operator socket refused
	Refused  string
}

// Told is what the operator socket says.
type Told struct {
	ID, Mode       string
	Program        string
	Operators      []uint32
	AgentUsers     []uint32
	AgentGroups    []int
	AgentGroupsOf  func(uid uint32) []Group // nil: not asked
	Proofs         []string
	Ignored        []string
	Backend        string
	Rollback       string
	GenerationFile string
	Programs       []string // that the daemon runs, or hands to what it runs
	Slots          []Slot   // that open the vault without a person
	VaultOpen      bool
	Latched        bool
	Warning        string // of the record
}

// Slot opens the vault without a person.
type Slot struct{ Kind, ID string }

// told is what the daemon told, or nil and a finding that says why not.
func (e *exam) told(id, attack string) (*Told, *Finding) {
	if e.Daemon == nil {
		f := unseen(id, attack, "no daemon answers: "+e.Missing, startIt)
		return nil, &f
	}
	if e.Daemon.Told == nil {
		f := unseen(id, attack, "the operator socket refused: "+e.Daemon.Refused, asOwner)
		return nil, &f
	}
	return e.Daemon.Told, nil
}

// daemonUID is the daemon's user: of the process, or who owns its state.
func (e *exam) daemonUID() (int, bool) {
	if e.Daemon != nil {
		return e.Daemon.UID, true
	}
	if uid, ok := ownerOf(e.Places.State); ok {
		return uid, true
	}
	return 0, false
}

func ownerOf(path string) (int, bool) {
	if path == "" {
		return 0, false
	}
	fi, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// bystander says that no agent's program runs as the caller: root, and the user of
// a daemon that is apart from all agents. What they may do says nothing about an
// agent.
func (e *exam) bystander() bool {
	return e.isRoot() || e.Daemon != nil && e.Daemon.Told != nil && e.Daemon.Told.Mode == ModeIsolated && e.Daemon.UID == e.Caller.UID
}

// enemy says whether a program of this user counts as hostile: the caller's own,
// unless it is a bystander, and every agent's.
func (e *exam) enemy(uid int) bool {
	if uid == e.Caller.UID && !e.bystander() {
		return true
	}
	return e.agent(uid)
}

// agent says whether the daemon takes the user as an agent.
func (e *exam) agent(uid int) bool {
	if e.Daemon == nil || e.Daemon.Told == nil {
		return false
	}
	t := e.Daemon.Told
	if slices.Contains(t.AgentUsers, uint32(uid)) {
		return true
	}
	groups := e.groupsOf(uid)
	return slices.ContainsFunc(groups, func(g Group) bool { return slices.Contains(t.AgentGroups, g.GID) })
}

func (e *exam) groupsOf(uid int) []Group {
	if uid == e.Caller.UID {
		return e.Caller.Groups
	}
	if t := e.Daemon.Told; t.AgentGroupsOf != nil {
		return t.AgentGroupsOf(uint32(uid))
	}
	return nil
}

// findMode says how far agents and daemon are apart, as far as it shows.
func (e *exam) findMode() string {
	if e.Daemon == nil {
		if uid, ok := e.daemonUID(); ok && uid == e.Caller.UID && uid != 0 {
			return ModeSame
		}
		return ModeUnknown
	}
	if t := e.Daemon.Told; t != nil && t.Mode != ModeIsolated {
		return t.Mode
	}
	if e.Daemon.UID == e.Caller.UID && e.Caller.UID != 0 && e.Daemon.Told == nil {
		return ModeSame
	}
	// The daemon cannot know that a person who becomes its user by sudo has
	// agents too; here it shows.
	if e.Caller.UID != 0 && e.Caller.UID != e.Daemon.UID && e.becomesRoot() != "" {
		return ModeShared
	}
	if e.Daemon.Told == nil && e.Caller.UID == 0 {
		return ModeUnknown
	}
	return ModeIsolated
}

// opened is what an attempt to read a file came to.
func opened(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func refusedByMode(err error) bool { return errors.Is(err, fs.ErrPermission) }
