package operatorapi

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"

	"chatelaine/internal/approvals"
)

// widening is one operation that takes a proof.
type widening struct {
	operation string
	subject   func(*call) string // nil: the operation has none
	aside     []string           // members of the body that the challenge does not cover
	// plan says what the operation would do now, for these parameters. It changes
	// nothing. It runs once for the challenge and once more for the operation.
	plan func(a *API, subject string, of object) (statement, error)
}

// statement is what one operation would do, as the daemon sees it now. A proof
// covers all of it, and do uses nothing that it does not hold.
type statement struct {
	covers string           // one sentence of the daemon's own
	of     map[string]any   // the parameters, defaults left out
	facts  []approvals.Part // what else it depends on
	do     func(*call) (any, error)
}

// Labels that keep these digests apart from every other of the daemon's.
const (
	statementDomain = "chatelaine/v1 statement"
	factDomain      = "chatelaine/v1 fact"
)

// operation is what the desk binds a challenge to: SHA-256 over the length-
// prefixed domain, operation, subject, sentence, and the name and digest of the
// parameters and of each fact.
func (s statement) operation(kind, subject string) approvals.Operation {
	parts := append([]approvals.Part{factOf("the parameters of the request", s.of)}, s.facts...)
	h := sha256.New()
	for _, text := range []string{statementDomain, kind, subject, s.covers} {
		writePart(h, []byte(text))
	}
	for _, p := range parts {
		writePart(h, []byte(p.Name))
		writePart(h, p.Digest[:])
	}
	return approvals.Operation{Kind: kind, Subject: subject, Digest: [32]byte(h.Sum(nil)), Parts: parts}
}

func writePart(h hash.Hash, b []byte) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	h.Write(b)
}

// factOf names one thing that a proof depends on. The value is text, flags,
// numbers and maps of these, whose JSON has one form: encoding/json sorts the
// members.
func factOf(name string, v any) approvals.Part {
	b, err := json.Marshal(v)
	if err != nil {
		panic("operatorapi: a fact has no JSON form: " + err.Error()) // a mistake of ours, whatever was asked
	}
	h := sha256.New()
	writePart(h, []byte(factDomain))
	writePart(h, b)
	return approvals.Part{Name: name, Digest: [32]byte(h.Sum(nil))}
}

var errNoPlan = errors.New("the route needs a proof and has no operation")

// widen performs an operation if the proof covers what it would do now.
func (a *API) widen(w *widening, c *call) (any, error) {
	if w == nil {
		return nil, errNoPlan
	}
	p, err := c.proof()
	if err != nil {
		return nil, err
	}
	subject := ""
	if w.subject != nil {
		subject = w.subject(c)
	}
	s, err := w.plan(a, subject, c.body.without(append([]string{memberProof}, w.aside...)...))
	if err != nil {
		return nil, err
	}
	if err := a.desk.Prove(s.operation(w.operation, subject), p); err != nil {
		a.g.Note("proof refused: "+w.operation, subject, c.by)
		return nil, err
	}
	return s.do(c)
}
