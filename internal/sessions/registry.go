package sessions

import (
	"errors"
	"time"

	"chatelaine/internal/durable"
)

var errUnbuilt = errors.New("not built")

// Buckets are the names that the store must be opened with.
func Buckets() []string { return []string{"sessions.tokens", "sessions.names", "sessions.meta"} }

// Keys come from the vault's data key, 32 bytes each. Unlock copies them.
type Keys struct{ Index, Wrap []byte }

// Caller is who is at the other end of a connection, as far as it is known.
type Caller struct {
	UID      uint32
	Listener string // "socket" or "tcp"
	PID      int    // 0 where unknown
	Exe      string // "" where unknown; for the card only, never authority
}

// States of a session.
const (
	StatePending    = "pending"
	StateAuthorised = "authorised"
	StateEnded      = "ended"
	StateRevoked    = "revoked"
	StateExpired    = "expired"
)

// Pending is the answer to a request for a session. Token is told once.
type Pending struct {
	ID, Token, PairingCode string
	Expires                time.Time
}

// Session is a copy of what the daemon knows of one session.
type Session struct {
	ID, Name, Anchor, State     string
	UID                         uint32
	Listener, Exe               string
	PID                         int
	PairingCode                 string
	Opened, Authorised, Expires time.Time
	AuthorisedBy, EndedBy       string
	Reason                      string // why it ended
	Conflict                    bool   // pending, while another session holds the name
	Pins                        map[string]string
}

// Options of a registry; zero values are the defaults of the documents.
type Options struct {
	Clock      durable.Clock
	Absolute   time.Duration // 8 h
	Idle       time.Duration // 30 min
	PendingFor time.Duration // 10 min
	PerUID     int           // 4 pending
	InAll      int           // 16 pending
}

// Registry holds the sessions.
type Registry struct{}

func Open(store *durable.Store, o Options) (*Registry, error) { return nil, errUnbuilt }
func (r *Registry) Unlock(k Keys) error                       { return errUnbuilt }
func (r *Registry) Lock()                                     {}
func (r *Registry) Close()                                    {}
func (r *Registry) Request(c Caller, name, anchor string) (Pending, error) {
	return Pending{}, errUnbuilt
}
func (r *Registry) Authenticate(token string, c Caller) (Session, error) {
	return Session{}, errUnbuilt
}
func (s Session) RequireAuthorised() error                                       { return errUnbuilt }
func (r *Registry) Authorize(id string, pins map[string]string, by string) error { return errUnbuilt }
func (r *Registry) Revoke(id, by string) error                                   { return errUnbuilt }
func (r *Registry) End(token string, c Caller) error                             { return errUnbuilt }
func (r *Registry) List() []Session                                              { return nil }
func (r *Registry) Get(id string) (Session, bool)                                { return Session{}, false }
func (r *Registry) Pins(id string) map[string]string                             { return nil }
func (r *Registry) Hold(id string) (release func())                              { return func() {} }
func (r *Registry) Alive(id string) error                                        { return errUnbuilt }
func (r *Registry) OnEnd(f func(s Session, reason string))                       {}
func (r *Registry) OnChange(f func(s Session))                                   {}
