package client

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// maxTokenFile bounds what is read of a token file; one has a few hundred bytes.
const maxTokenFile = 16 << 10

// agentName is the form of a name that can be a file's name; the daemon may be
// stricter.
var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// CheckAgentName says whether a name can be an agent's.
func CheckAgentName(name string) error {
	if !agentName.MatchString(name) {
		return errors.New("an agent's name has 1 to 64 letters, digits, '_', '.' or '-' and begins with a letter or digit")
	}
	return nil
}

// SavedSession is what is kept between two calls of one agent.
type SavedSession struct {
	Name        string `json:"name"`
	SessionID   string `json:"session_id"`
	Token       string `json:"token"`
	PairingCode string `json:"pairing_code"`
	Peer        string `json:"peer"` // socket or address it is for
}

// ErrNoSession says that no session is kept under that name.
var ErrNoSession = errors.New("no session is stored")

// Tokens keeps sessions in a folder that only their user can read.
type Tokens struct{ dir string }

// FindTokens gives the folder of the caller's tokens: in the runtime folder
// where it is the caller's own, else (a daemon of another user) in the caller's
// own XDG runtime folder.
func FindTokens(p Places, getenv func(string) string, uid int) (Tokens, error) {
	if owned(p.Runtime, uid) {
		return Tokens{dir: filepath.Join(p.Runtime, "tokens")}, nil
	}
	if x := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(x) && owned(x, uid) {
		return Tokens{dir: filepath.Join(x, folderName, "tokens")}, nil
	}
	return Tokens{}, fmt.Errorf("there is no private folder for a session token: %s is not yours and XDG_RUNTIME_DIR names no folder of yours; set XDG_RUNTIME_DIR to a folder that only you can use", p.Runtime)
}

func owned(dir string, uid int) bool {
	fi, err := os.Stat(dir)
	if err != nil || !fi.IsDir() {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == uid
}

func (t Tokens) file(name string) string { return filepath.Join(t.dir, name+".json") }

// Load returns the session kept under name for that peer. ErrNoSession where
// there is none; a file that others can read is refused.
func (t Tokens) Load(name, peer string) (SavedSession, error) {
	if err := CheckAgentName(name); err != nil {
		return SavedSession{}, err
	}
	path := t.file(name)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return SavedSession{}, ErrNoSession
	}
	if err != nil {
		return SavedSession{}, fmt.Errorf("cannot open the token file %s", path)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o077 != 0 {
		return SavedSession{}, fmt.Errorf("the token file %s must be a file that only you can read (0600); remove it and start a new session", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return SavedSession{}, fmt.Errorf("cannot read the token file %s", path)
	}
	var s SavedSession
	if json.Unmarshal(b, &s) != nil || s.Token == "" || s.Name != name {
		return SavedSession{}, fmt.Errorf("the token file %s is damaged; remove it and start a new session", path)
	}
	if s.Peer != peer {
		return SavedSession{}, ErrNoSession
	}
	return s, nil
}

// Save keeps a session: written beside, synced, renamed, never readable by
// others.
func (t Tokens) Save(s SavedSession) error {
	if err := CheckAgentName(s.Name); err != nil {
		return err
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of session tokens %s: %w", t.dir, plainCause(err))
	}
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot write the session: %w", err)
	}
	f, err := os.CreateTemp(t.dir, ".new-*") // 0600 from the start
	if err != nil {
		return fmt.Errorf("cannot write in %s: %w", t.dir, plainCause(err))
	}
	defer os.Remove(f.Name()) // gone already where the rename worked
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), t.file(s.Name))
	}
	if err != nil {
		return fmt.Errorf("cannot write the token file %s: %w", t.file(s.Name), plainCause(err))
	}
	return nil
}

// Drop forgets a session; none is fine.
func (t Tokens) Drop(name string) error {
	if err := CheckAgentName(name); err != nil {
		return err
	}
	if err := os.Remove(t.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the token file %s: %w", t.file(name), plainCause(err))
	}
	return nil
}

// Lock keeps other commands of the same user from opening a second session at
// the same moment.
func (t Tokens) Lock() (unlock func(), err error) {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of session tokens %s: %w", t.dir, plainCause(err))
	}
	d, err := os.Open(t.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", t.dir, plainCause(err))
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		d.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", t.dir, err)
	}
	return func() { d.Close() }, nil
}

// plainCause drops the path that the message already names.
func plainCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
