package main

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/client"
	"chatelaine/internal/doctor"
)

// doctorFacts are what the doctor is given, and the daemon's version.
type doctorFacts struct {
	doctor.Facts
	version string
}

// defaultAgentPort is where agents look when nothing else was said
// (docs/configuration.md, listen.agent_tcp).
const defaultAgentPort = 7317

// doctorFacts gathers who asks, where things lie, and what the daemon tells.
// Nothing but a mistake of the command line is an error: what is not known is
// told as that.
func (a *app) doctorFacts(ctx context.Context) (doctorFacts, error) {
	p, err := a.places()
	if err != nil {
		return doctorFacts{}, err
	}
	owners, err := a.owners()
	if err != nil {
		return doctorFacts{}, err
	}
	f := doctorFacts{}
	f.Caller = thisCaller(a.getenv)
	f.PortOwners, f.Port = client.PortOwners, defaultAgentPort
	f.Daemon, f.Missing = whoListens(ctx, p)
	if f.Daemon != nil {
		// A daemon of another user is asked too: the doctor sends no secret.
		a.askDaemon(ctx, &f, &p, owners.With(uint32(f.Daemon.UID)))
	}
	f.Places = doctorPlaces(p, a.getenv)
	return f, nil
}

// whoListens asks the kernel whose the sockets are; the operators' may be shut.
func whoListens(ctx context.Context, p client.Places) (*doctor.Daemon, string) {
	var why error
	for _, socket := range []string{p.OperatorSocket(), p.AgentSocket()} {
		pid, uid, err := client.Who(ctx, socket)
		if err == nil {
			return &doctor.Daemon{PID: pid, UID: int(uid)}, ""
		}
		why = err
	}
	return nil, reachedWord(why)
}

// askDaemon fills in what the operator socket tells, and the folders that the
// daemon itself uses.
func (a *app) askDaemon(ctx context.Context, f *doctorFacts, p *client.Places, owners client.Owners) {
	op := client.NewOperator(p.OperatorSocket(), owners, userAgent())
	defer op.Close()
	s, err := op.Status(ctx)
	if err != nil {
		f.Daemon.Refused = reachedWord(err)
		if e := unwrapped(err); e != nil {
			f.Daemon.Refused = reachedWord(e)
		}
		return
	}
	f.version = s.Version
	f.Port = agentPort(s.Listeners)
	x := s.Process
	for into, from := range map[*string]string{&p.Config: x.Config, &p.State: x.State, &p.Runtime: x.Runtime} {
		if filepath.IsAbs(from) {
			*into = from
		}
	}
	t := &doctor.Told{
		ID: s.DaemonID, Mode: s.Mode, Program: x.Program, Operators: x.Operators, AgentUsers: x.AgentUsers, AgentGroups: x.AgentGroups,
		AgentGroupsOf: groupsOf, Proofs: x.Proofs, Ignored: x.Ignored, Backend: s.Vault.Backend, Rollback: s.Vault.Rollback,
		GenerationFile: x.GenerationFile, Programs: x.Programs, VaultOpen: s.Vault.State == "open", Latched: s.Record.State == "latched", Warning: s.Record.Warning,
	}
	for _, u := range s.Vault.Unattended {
		t.Slots = append(t.Slots, doctor.Slot{Kind: u.Kind, ID: shortID(u)})
	}
	f.Daemon.Told = t
}

// unwrapped is the reason inside a client's error, nil where it has none.
func unwrapped(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return nil
}

// agentPort is the port of the agents' TCP listener, 0 where it is off.
func agentPort(all []client.Listener) int {
	for _, l := range all {
		if l.Name != "agents-tcp" {
			continue
		}
		if ap, err := netip.ParseAddrPort(l.Address); err == nil {
			return int(ap.Port())
		}
	}
	return 0
}

func thisCaller(getenv func(string) string) doctor.Caller {
	c := doctor.Caller{UID: os.Getuid()}
	gids, _ := os.Getgroups() // none where the system does not tell
	gids = append(gids, os.Getgid())
	slices.Sort(gids)
	for _, gid := range slices.Compact(gids) {
		c.Groups = append(c.Groups, namedGroup(gid))
	}
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); value != "" && getenv(name) == value {
			c.Variables = append(c.Variables, name)
		}
	}
	c.Program, _ = os.Executable() // "" where the system does not tell
	return c
}

func namedGroup(gid int) doctor.Group {
	g := doctor.Group{GID: gid, Name: strconv.Itoa(gid)}
	if found, err := user.LookupGroupId(g.Name); err == nil {
		g.Name = found.Name
	}
	return g
}

// groupsOf are the groups of a user as this machine's files have them.
func groupsOf(uid uint32) []doctor.Group {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nil
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil
	}
	var out []doctor.Group
	for _, id := range ids {
		if gid, err := strconv.Atoi(id); err == nil {
			out = append(out, namedGroup(gid))
		}
	}
	return out
}

func doctorPlaces(p client.Places, getenv func(string) string) doctor.Places {
	return doctor.Places{
		Config: p.Config, Settings: filepath.Join(p.Config, "chatelaine.yaml"), Site: p.SiteFile(), Contracts: p.Contracts(),
		State: p.State, Vault: filepath.Join(p.State, "vault"), Runtime: p.Runtime,
		AgentSocket: p.AgentSocket(), OperatorSocket: p.OperatorSocket(), Program: daemonProgram(), Units: unitPlaces(getenv),
	}
}

// daemonProgram is where chatelained lies if it does not run: beside this
// program, or where the shell would find it.
func daemonProgram() string {
	if own, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(own), "chatelained"); isFile(beside) {
			return beside
		}
	}
	found, err := exec.LookPath("chatelained")
	if err != nil {
		return ""
	}
	if abs, err := filepath.Abs(found); err == nil {
		return abs
	}
	return ""
}

// unitPlaces are where a unit of ours would be, the strongest first
// (systemd.unit(5), launchd.plist(5)).
func unitPlaces(getenv func(string) string) []string {
	const unit, plist = "chatelained.service", "org.chatelaine.chatelained.plist"
	places := []string{"/etc/systemd/system/" + unit, "/run/systemd/system/" + unit, "/usr/local/lib/systemd/system/" + unit, "/usr/lib/systemd/system/" + unit, "/Library/LaunchDaemons/" + plist}
	home, config := getenv("HOME"), getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) && filepath.IsAbs(home) {
		config = filepath.Join(home, ".config")
	}
	if filepath.IsAbs(config) {
		places = append(places, filepath.Join(config, "systemd/user", unit))
	}
	if filepath.IsAbs(home) {
		places = append(places, filepath.Join(home, "Library/LaunchAgents", plist))
	}
	return append(places, "/etc/systemd/user/"+unit, "/usr/lib/systemd/user/"+unit)
}
