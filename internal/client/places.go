package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The environment variables that name the places; a flag is stronger.
const (
	EnvConfig  = "CHATELAINE_CONFIG"
	EnvState   = "CHATELAINE_STATE"
	EnvRuntime = "CHATELAINE_RUNTIME"
)

const folderName = "chatelaine"

// maxSocketPath is the longest path that every supported system takes for a
// Unix socket (macOS: 104 bytes with the closing zero).
const maxSocketPath = 103

// Places are the three folders that the daemon and its clients share. All are
// absolute.
type Places struct {
	Config, State, Runtime string
}

// PlaceOptions are what the places are found from. The zero value of a field
// means: not given.
type PlaceOptions struct {
	Config, State, Runtime string              // the flags
	Getenv                 func(string) string // nil means os.Getenv
	Home                   string              // "" means os.UserHomeDir
	UID                    int                 // the caller's; 0 is root
	Exists                 func(string) bool   // nil means: asks the file system
	Machine                bool                // a client: lead a person without a daemon of their own to the machine's
}

// FindPlaces finds the folders: flag, then environment, then the defaults. Root
// has /etc, /var/lib and /run; everyone else has the XDG folders. With Machine a
// person who has no such folder of their own is led to the machine's where it
// exists.
func FindPlaces(o PlaceOptions) (Places, error) {
	f := finder{o: o.filled()}
	p := Places{
		Config:  f.pick(o.Config, EnvConfig, f.xdg("XDG_CONFIG_HOME", ".config"), "/etc/"+folderName),
		Runtime: f.pick(o.Runtime, EnvRuntime, f.runtime(), "/run/"+folderName),
		State:   f.pickOwn(o.State, EnvState, f.xdg("XDG_STATE_HOME", ".local/state"), "/var/lib/"+folderName),
	}
	if f.err != nil {
		return Places{}, f.err
	}
	return p, nil
}

func (o PlaceOptions) filled() PlaceOptions {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir()
	}
	if o.Exists == nil {
		o.Exists = func(p string) bool { _, err := os.Stat(p); return err == nil }
	}
	return o
}

// finder gathers the first error, so that FindPlaces reads as a list.
type finder struct {
	o   PlaceOptions
	err error
}

// pick chooses one folder; the machine's own is taken by a person only where
// theirs does not exist and the machine's does.
func (f *finder) pick(flag, env, user, machine string) string {
	if got, ok := f.given(flag, env); ok {
		return got
	}
	if f.o.UID == 0 {
		return machine
	}
	if f.o.Machine && (user == "" || !f.o.Exists(user)) && f.o.Exists(machine) {
		return machine
	}
	if user == "" {
		f.fail(errors.New("no home folder is known: set " + env))
	}
	return user
}

// pickOwn is pick without being led to the machine's folder: state is written.
func (f *finder) pickOwn(flag, env, user, machine string) string {
	if got, ok := f.given(flag, env); ok {
		return got
	}
	if f.o.UID == 0 {
		return machine
	}
	if user == "" {
		f.fail(errors.New("no home folder is known: set " + env))
	}
	return user
}

func (f *finder) given(flag, env string) (string, bool) {
	v := flag
	if v == "" {
		v = f.o.Getenv(env)
	}
	if v == "" {
		return "", false
	}
	abs, err := filepath.Abs(v)
	if err != nil {
		f.fail(fmt.Errorf("cannot make %q an absolute path: %w", v, err))
	}
	return abs, true
}

// xdg follows the XDG base directory rule: a relative value is ignored.
func (f *finder) xdg(env, underHome string) string {
	if v := f.o.Getenv(env); filepath.IsAbs(v) {
		return filepath.Join(v, folderName)
	}
	if f.o.Home == "" {
		return ""
	}
	return filepath.Join(f.o.Home, filepath.FromSlash(underHome), folderName)
}

// runtime falls back to a folder under state where the system gives its users
// no runtime folder (macOS, plain containers).
func (f *finder) runtime() string {
	if v := f.o.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(v) {
		return filepath.Join(v, folderName)
	}
	state := f.o.State
	if state == "" {
		state = f.o.Getenv(EnvState)
	}
	if state == "" {
		state = f.xdg("XDG_STATE_HOME", ".local/state")
	}
	if state == "" {
		return ""
	}
	return filepath.Join(state, "run")
}

func (f *finder) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// AgentSocket is the socket that agents use.
func (p Places) AgentSocket() string { return filepath.Join(p.Runtime, "agent.sock") }

// OperatorSocket is the socket that operators use.
func (p Places) OperatorSocket() string { return filepath.Join(p.Runtime, "operator.sock") }

// SiteFile is the operator's targets.yaml.
func (p Places) SiteFile() string { return filepath.Join(p.Config, "targets.yaml") }

// Contracts is the folder of contracts.
func (p Places) Contracts() string { return filepath.Join(p.Config, "contracts") }

// Record is the folder of the record.
func (p Places) Record() string { return filepath.Join(p.State, "audit") }

// checkSocketPath says why a path cannot be a socket before the system says
// only "invalid argument".
func checkSocketPath(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("the socket path %q has %d bytes; at most %d work on every system: choose a shorter --runtime", path, len(path), maxSocketPath)
	}
	if strings.ContainsRune(path, 0) {
		return errors.New("the socket path holds a zero byte")
	}
	return nil
}
