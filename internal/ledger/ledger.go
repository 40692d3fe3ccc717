package ledger

import (
	"errors"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

var errUnbuilt = errors.New("not built")

// Buckets are the names that the store must be opened with.
func Buckets() []string { return []string{"ledger.calls", "ledger.open", "ledger.ids", "ledger.meta"} }

// Options of a ledger. Keep is how long finished outcomes are given again (30
// days when zero). Now is the wall clock (time.Now when nil).
type Options struct {
	Keep time.Duration
	Now  func() time.Time
}

// Ledger is every call by its request id.
type Ledger struct{}

// Call is one live call; safe for concurrent use.
type Call struct{}

func Open(store *durable.Store, o Options) (*Ledger, error) { return nil, errUnbuilt }
func (l *Ledger) Unlock(k Keys) error                       { return errUnbuilt }
func (l *Ledger) Lock()                                     {}
func (l *Ledger) Unlocked() bool                            { return false }
func (l *Ledger) NewID() string                             { return "" }
func (l *Ledger) Claim(o Owner, requestID, action string, inputDigest [32]byte, change bool) (*Call, Verdict, error) {
	return nil, 0, errUnbuilt
}
func (l *Ledger) Lookup(o Owner, requestID string) (*Call, bool, error) {
	return nil, false, errUnbuilt
}
func (l *Ledger) List(unresolvedOnly bool) ([]Info, error) { return nil, errUnbuilt }
func (l *Ledger) Get(requestID string) (Info, error)       { return Info{}, errUnbuilt }
func (l *Ledger) Resolve(requestID string, happened bool, envelope []byte) error {
	return errUnbuilt
}
func (l *Ledger) Recover() (unresolved int, err error)       { return 0, errUnbuilt }
func (l *Ledger) Counts() (running, unresolved int)          { return 0, 0 }
func (l *Ledger) Sweep() error                               { return errUnbuilt }
func (c *Call) RequestID() string                            { return "" }
func (c *Call) Action() string                               { return "" }
func (c *Call) State() State                                 { return Forgotten }
func (c *Call) SetState(s State) error                       { return errUnbuilt }
func (c *Call) Done() <-chan struct{}                        { return nil }
func (c *Call) Arm(a Armed) error                            { return errUnbuilt }
func (c *Call) Finish(out Outcome) error                     { return errUnbuilt }
func (c *Call) Prepare(out Outcome) error                    { return errUnbuilt }
func (c *Call) Publish()                                     {}
func (c *Call) Release(envelope []byte, code string) error   { return errUnbuilt }
func (c *Call) Cancel() error                                { return errUnbuilt }
func (c *Call) Rearm(out Outcome, after time.Duration) error { return errUnbuilt }
func (c *Call) Outcome() (Outcome, bool)                     { return Outcome{}, false }
func (c *Call) IdempotencyKey() string                       { return "" }
func (c *Call) Doubt()                                       {}
func (c *Call) Doubted() bool                                { return false }

var _ = fault.Internal
