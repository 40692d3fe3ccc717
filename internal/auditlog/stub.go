package auditlog

import (
	"context"
	"errors"
	"time"
)

var errStub = errors.New("auditlog: not ready")

// The reasons a log refuses.
var (
	ErrAbsent   = errors.New("auditlog: no record here; chatelained init makes one")
	ErrDamaged  = errors.New("auditlog: the record is damaged")
	ErrFull     = errors.New("auditlog: no room for a new intent and its outcome")
	ErrLatched  = errors.New("auditlog: writing failed; restart the daemon")
	ErrDeadline = errors.New("auditlog: the disk did not answer in time")
	ErrTooLarge = errors.New("auditlog: the event is larger than a record may be")
	ErrLocked   = errors.New("auditlog: another process writes this record")
	ErrSigner   = errors.New("auditlog: the signing key does not belong to this record")
	ErrClosed   = errors.New("auditlog: the record is closed")
)

type Recipient struct{ pub []byte }
type Identity struct{ use func(func([]byte)) }

func GenerateIdentity() (Identity, error)             { return Identity{}, errStub }
func ParseIdentity(s string) (Identity, error)        { return Identity{}, errStub }
func ParseRecipient(s string) (Recipient, error)      { return Recipient{}, errStub }
func (i Identity) Recipient() Recipient               { return Recipient{} }
func (i Identity) Reveal() string                     { return "" } // the text form; String prints "[key]"
func (i Identity) String() string                     { return "[key]" }
func (r Recipient) String() string                    { return "" }
func (r Recipient) ID() string                        { return "" }
func Create(dir string, recipients []Recipient) error { return errStub }

type Options struct {
	Dir                      string
	Recipients               []Recipient
	SegmentBytes             int64
	EpochRecords             int
	EpochAge, CommitDeadline time.Duration
	Ring                     int
	OnLatch                  func(error)
}
type Log struct{}
type Pending struct{}
type Receipt struct {
	Seq   uint64
	Chain [32]byte
	First uint64
}
type State struct {
	NextSeq, Epoch uint64
	Latched        error
	Warn           string
}

func Open(o Options) (*Log, error)                                           { return nil, errStub }
func (l *Log) Append(evs ...Event) *Pending                                  { return &Pending{} }
func (l *Log) AppendIntent(ev Event, reserve int64) *Pending                 { return &Pending{} }
func (p *Pending) Wait(ctx context.Context) (Receipt, error)                 { return Receipt{}, errStub }
func (l *Log) State() State                                                  { return State{} }
func (l *Log) Recent() []Event                                               { return nil }
func (l *Log) Close() error                                                  { return nil }
func Read(dir string, id Identity, f func(seq uint64, ev Event) error) error { return errStub }

type Report struct{}

func Verify(path string) Report                 { return Report{} }
func (r Report) Text() string                   { return "" }
func (r Report) JSON() []byte                   { return nil }
func (r Report) ExitCode() int                  { return 2 }
func ActivityJournal(evs []Event) []Activity    { return nil }
func SessionJournal(evs []Event) []SessionEntry { return nil }
