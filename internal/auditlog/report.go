package auditlog

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The three words of Report.Chain.
const (
	chainValid      = "valid"
	chainBroken     = "broken"
	chainUnreadable = "unreadable"
)

const completenessWord = "not proven"

// signerShown is how many hexadecimal digits of a signing key the text shows;
// the JSON form has all.
const signerShown = 16

// Report is what Verify found. Its fields are the members of the JSON form.
// Sequences are 0 where there is none.
type Report struct {
	Chain          string   `json:"chain"` // valid, broken, unreadable
	Verified       uint64   `json:"verified"`
	First          uint64   `json:"first_sequence"`
	Last           uint64   `json:"last_sequence"`
	LogID          string   `json:"log_id,omitempty"`
	Segments       int      `json:"segments"`
	Epoch          uint64   `json:"epoch"`
	Recipients     []string `json:"recipients"` // key ids of the newest epoch
	SignedThrough  uint64   `json:"signed_through"`
	Signer         string   `json:"signer,omitempty"`
	Witnessed      uint64   `json:"witnessed_through"`
	UnanchoredTail uint64   `json:"unanchored_tail"`
	Completeness   string   `json:"completeness"`
	Cuts           []Cut    `json:"cuts"`

	EarlierNotGiven uint64 `json:"earlier_not_given,omitempty"` // one file: records 1..N were not looked at
	PrunedThrough   uint64 `json:"pruned_through,omitempty"`
	PruneSeq        uint64 `json:"prune_sequence,omitempty"`

	FirstBroken uint64 `json:"first_broken_sequence,omitempty"`
	File        string `json:"file,omitempty"`
	Offset      int64  `json:"offset"`
	Reason      string `json:"reason,omitempty"`
	SuspectFrom uint64 `json:"suspect_from,omitempty"`
	SuspectTo   uint64 `json:"suspect_to,omitempty"`

	Error string `json:"error,omitempty"` // unreadable: why
}

// Cut is an unfinished last batch that a restart cut off and kept beside the
// log.
type Cut struct {
	Seq     uint64 `json:"sequence"` // of the RECOVER record
	Bytes   uint64 `json:"bytes"`
	SHA256  string `json:"sha256"`
	LastSeq uint64 `json:"after_sequence"`
}

func unreadable(err error) Report {
	return Report{Chain: chainUnreadable, Completeness: completenessWord, Recipients: []string{}, Cuts: []Cut{}, Error: err.Error()}
}

// ExitCode is 0 for a valid record, 1 for a broken one, 2 for one that could
// not be read.
func (r Report) ExitCode() int {
	switch r.Chain {
	case chainValid:
		return 0
	case chainBroken:
		return 1
	}
	return 2
}

// JSON is the report for programs: one object, one line.
func (r Report) JSON() []byte {
	b, err := json.Marshal(struct {
		Report
		ExitCode int `json:"exit_code"`
	}{r, r.ExitCode()})
	if err != nil {
		panic("auditlog: report: " + err.Error()) // plain fields only
	}
	return append(b, '\n')
}

// Text is the report for people. The first four lines have a fixed form;
// comments follow after two spaces.
func (r Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("verified: %d records", r.Verified)
	line("first sequence: %s%s", seqText(r.First), r.prunedComment())
	line("last sequence: %s", seqText(r.Last))
	line("chain: %s", r.Chain)
	switch r.Chain {
	case chainValid:
		r.validText(line)
	case chainBroken:
		r.brokenText(line)
	default:
		line("error: %s", r.Error)
	}
	return b.String()
}

func (r Report) prunedComment() string {
	if r.PrunedThrough == 0 {
		return ""
	}
	return fmt.Sprintf("  (1..%d pruned by policy, recorded at %d)", r.PrunedThrough, r.PruneSeq)
}

func (r Report) validText(line func(string, ...any)) {
	line("signed through: %s", r.signedText())
	line("witnessed through: %s", seqText(r.Witnessed))
	line("unanchored tail: %d records - their removal would not be noticed", r.UnanchoredTail)
	line("completeness: not proven - an intact chain does not show that everything was logged")
	if r.EarlierNotGiven > 0 {
		line("earlier records: not given (1..%d)", r.EarlierNotGiven)
	}
	for _, c := range r.Cuts {
		line("cut: %d bytes of an unfinished batch after %d, recorded at %d", c.Bytes, c.LastSeq, c.Seq)
	}
}

func (r Report) brokenText(line func(string, ...any)) {
	line("first broken sequence: %d", r.FirstBroken)
	line("file: %s", r.File)
	line("offset: %d", r.Offset)
	line("reason: %s", r.Reason)
	line("suspect range: %d..%d", r.SuspectFrom, r.SuspectTo)
	line("signed through: %s", r.signedText())
}

func (r Report) signedText() string {
	if r.SignedThrough == 0 {
		return "none"
	}
	return fmt.Sprintf("%d  (epoch %d, key %s)", r.SignedThrough, r.Epoch, r.Signer[:signerShown])
}

// seqText writes a sequence, or "none" for 0.
func seqText(seq uint64) string {
	if seq == 0 {
		return "none"
	}
	return fmt.Sprint(seq)
}
