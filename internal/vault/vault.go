package vault

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/secret"
)

// Options says where a vault keeps things and what its passphrases cost.
type Options struct {
	// Backend keeps the sealed secrets of identities; nil keeps them in the
	// vault file itself.
	Backend Backend
	// KDF is used for new passphrases; the zero value is the measured default.
	KDF KDFParams
	// DangerouslyWeakKDF lets Create go below the floor. Only for tests.
	DangerouslyWeakKDF bool
	// GenerationFile keeps a second copy of the generation counter, on another
	// file system, so that an old vault put back in place is noticed. Without
	// it the copy is in the backend, where there is one.
	GenerationFile string
	// GenerationBackend keeps that second copy in the OS keychain instead.
	// GenerationFile goes before it.
	GenerationBackend Backend
	// SlotKeychain keeps the secrets of keychain slots; nil: there can be none.
	SlotKeychain Backend
	// CredentialsDir is where the service manager puts the unit's credentials
	// (CREDENTIALS_DIRECTORY); "": there are none.
	CredentialsDir string
}

// The states of a vault (docs/vault.md, "States").
const (
	StateSealed     = "sealed"
	StateOpening    = "opening"
	StateOpen       = "open"
	StateLocking    = "locking" // sealed, but leases taken before are still out
	StateDamaged    = "damaged"
	StateRolledBack = "rolled_back"
)

// moves is every way from one state to another. Locking is no state of its own
// here: it is sealed with leases still out.
var moves = map[string][]string{
	StateSealed:     {StateOpening},
	StateOpening:    {StateOpen, StateSealed, StateDamaged, StateRolledBack},
	StateOpen:       {StateSealed, StateDamaged},
	StateDamaged:    {StateOpening},
	StateRolledBack: {StateOpening},
}

// State is what may be shown without a proof.
type State struct {
	State      string
	Reason     string // why it is so: the lock's reason, or what is wrong
	Since      time.Time
	Backend    string // "file" or the backend's name
	Rollback   string // where the second generation counter is, or why there is none
	Identities int    // 0 unless open
	AutoLock   string // when it locks by itself
	Unattended []Slot // what opens it without a person
}

// Vault is one vault file. It is safe for concurrent use.
type Vault struct {
	path string
	o    Options

	// write is held through whatever reads or replaces the file. It is taken
	// before mu.
	write sync.Mutex
	// disk is the digest of the file as this process last read or wrote it.
	// Guarded by write.
	disk [sha256.Size]byte

	// Each way in is counted apart, so that wrong tries of one hold up no right
	// try of another.
	unlocks limiter
	codes   limiter
	imports limiter
	proofs  limiter

	sources   sourceBox // has a lock of its own
	tokens    tokens    // has a lock of its own
	rotations rotations // has a lock of its own

	mu         sync.Mutex // guards all below; never held during I/O
	state      string
	reason     string
	since      time.Time
	epoch      uint64 // counts locks, so that an unlock notices one
	head       header
	dataKey    secret.Secret
	contents   *contents
	leases     int
	lockedOnce bool // locked since this process began
	rollback   string
	auto       autoLock
	echoes     map[string]echo
	onLock     []func(reason string)
	onSuspend  []func(name string)
}

// Create makes a vault file that did not exist and returns it open.
func Create(path string, pass secret.Secret, o Options) (*Vault, error) {
	if err := checkPassphrase(pass); err != nil {
		return nil, err
	}
	for _, p := range []string{path, previousPath(path)} {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			return nil, errExists(p, err)
		}
	}
	kdf, err := newKDF(o)
	if err != nil {
		return nil, err
	}
	if err := durable.CleanTemp(filepath.Dir(path)); err != nil {
		return nil, err
	}
	v := newVault(path, o)
	key := newKey()
	head := header{generation: 1}
	_, _ = rand.Read(head.id[:]) // crypto/rand.Read never fails
	s, err := newPassphraseSlot(head.id, newSlotID(), kdf, pass, key)
	if err != nil {
		return nil, err
	}
	head.slots = []slot{s}
	c := newContents()
	b, err := encodeFile(head, key, c)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(path, b, fileMode); err != nil {
		return nil, err
	}
	v.disk = sha256.Sum256(b)
	v.become(opened{head: head, dataKey: key, contents: c})
	v.noteGeneration(context.Background())
	return v, nil
}

// Open reads a vault file and leaves it sealed. It answers ErrAbsent,
// ErrNotPrivate or ErrDamaged.
func Open(path string, o Options) (*Vault, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	img, err := decodeFile(b)
	if err != nil {
		return nil, withPrevious(path, err)
	}
	if err := durable.CleanTemp(filepath.Dir(path)); err != nil {
		return nil, err
	}
	v := newVault(path, o)
	v.head, v.disk = img.header, sha256.Sum256(b)
	return v, nil
}

func newVault(path string, o Options) *Vault {
	v := &Vault{path: path, o: o, state: StateSealed, reason: "started", since: time.Now(), echoes: map[string]echo{}}
	v.rollback = "not detectable: no second generation counter"
	if c := v.counter([idBytes]byte{}); c != nil {
		v.rollback = c.label() + ", not compared yet"
	}
	return v
}

// opened is what an unlock yields.
type opened struct {
	head     header
	dataKey  secret.Secret
	contents *contents
}

// become makes the vault open.
func (v *Vault) become(o opened) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.setStateLocked(StateOpening, "")
	v.head, v.dataKey, v.contents = o.head, o.dataKey, o.contents
	v.setStateLocked(StateOpen, "")
}

// setStateLocked makes one move of the table; v.mu is held. Another move is a
// mistake in this package, and going on after it could leave a key in memory.
func (v *Vault) setStateLocked(state, reason string) {
	if !slices.Contains(moves[v.state], state) {
		panic("vault: no way from " + v.state + " to " + state)
	}
	v.state, v.reason, v.since = state, reason, time.Now()
	if state == StateOpen {
		v.auto.begin()
	}
}

// State returns what the vault is now.
func (v *Vault) State() State {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := State{State: v.state, Reason: v.reason, Since: v.since, Backend: "file", Rollback: v.rollback}
	if v.state == StateSealed && v.leases > 0 {
		s.State = StateLocking
	}
	if v.o.Backend != nil {
		s.Backend = v.o.Backend.Name()
	}
	s.AutoLock = v.auto.text()
	if v.state == StateOpen {
		s.Identities = len(v.contents.items)
	}
	for _, sl := range v.head.slots {
		if sl.opensUnattended() {
			s.Unattended = append(s.Unattended, v.viewLocked(sl))
		}
	}
	return s
}

// CheckOpen returns nil while the vault is open, VAULT_LOCKED otherwise.
func (v *Vault) CheckOpen() error {
	_, err := v.current()
	return err
}

// current returns what an open vault holds. The parts stay readable for the
// caller, but their keys are wiped when the vault locks.
func (v *Vault) current() (opened, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state != StateOpen || v.auto.overdue() != "" {
		return opened{}, errLocked()
	}
	return opened{v.head, v.dataKey, v.contents}, nil
}

// Subkey derives a key of 32 bytes from the data key (HKDF-SHA256). The same
// label gives the same key for the life of the vault. The caller wipes it when
// the vault locks. It fails with VAULT_LOCKED.
func (v *Vault) Subkey(label string) (secret.Secret, error) {
	o, err := v.current()
	if err != nil {
		return secret.Secret{}, err
	}
	return o.rootKey(infoSubkey + label)
}

// rootKey derives a key that stays the same when the data key is replaced.
func (o opened) rootKey(info string) (secret.Secret, error) {
	if o.contents.hasRoot {
		return derive(o.contents.root, info)
	}
	return derive(o.dataKey, info)
}
