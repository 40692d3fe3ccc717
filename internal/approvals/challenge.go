package approvals

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/durable"
)

// challengeDomain keeps these digests apart from every other of the daemon's.
const challengeDomain = "chatelaine/v1 challenge"

const (
	nonceBytes = 32
	idBytes    = 12

	// perSubject and challengesMax bound what looking at cards can pile up;
	// the oldest goes first.
	perSubject    = 16
	challengesMax = 1024
)

type challenge struct {
	Challenge
	op   Operation
	life durable.Lifetime
	seq  uint64
}

// bind is SHA-256 over the length-prefixed domain, daemon id, kind, subject,
// digest, call, caller label, nonce and expiry: a proof over it says yes to
// exactly this, here, once, and until then.
func bind(daemonID string, op Operation, callID, caller string, nonce []byte, expires time.Time) [32]byte {
	at := binary.BigEndian.AppendUint64(nil, uint64(expires.UnixNano()))
	h := sha256.New()
	for _, part := range []string{challengeDomain, daemonID, op.Kind, op.Subject, string(op.Digest[:]), callID, caller, string(nonce), string(at)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return [32]byte(h.Sum(nil))
}

func newID(prefix string) string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// Challenge issues a new challenge for op, on each look another. For KindApprove
// the subject is the card's id and the digest the card's; a zero digest stands
// for it. Errors: ErrNotFound, ErrDecided, ErrNewChallenge (the digest is not
// the card's).
func (d *Desk) Challenge(op Operation) (Challenge, error) {
	var out Challenge
	err := d.do(func() error {
		life, callID, caller := d.o.ChallengeLife, "", ""
		if op.Kind == KindApprove {
			c := d.cards[op.Subject]
			if c == nil {
				return ErrNotFound
			}
			if _, err := next(c.State, EventApprove); err != nil {
				return err
			}
			if op.Digest == ([32]byte{}) {
				op.Digest = c.PlanDigest
			}
			if op.Digest != c.PlanDigest {
				return ErrNewChallenge
			}
			life, callID, caller = min(life, d.clock.Left(c.life)), c.CallID, c.RequestedBy
		}
		out = d.issueLocked(op, life, callID, caller)
		return nil
	})
	return out, err
}

func (d *Desk) issueLocked(op Operation, life time.Duration, callID, caller string) Challenge {
	var nonce [nonceBytes]byte
	_, _ = rand.Read(nonce[:]) // never fails
	span := d.clock.Start(life)
	d.seq++
	c := &challenge{op: op, life: span, seq: d.seq}
	c.ID, c.Expires = newID("chl_"), span.Ends()
	c.Bytes = bind(d.o.DaemonID, op, callID, caller, nonce[:], c.Expires)
	d.makeRoomLocked(op)
	d.challenges[c.ID] = c
	return c.Challenge
}

// makeRoomLocked drops what has lapsed, and the oldest where there are too many.
func (d *Desk) makeRoomLocked(op Operation) {
	var oldest, oldestSame *challenge
	same := 0
	for id, c := range d.challenges {
		if d.clock.Over(c.life) {
			delete(d.challenges, id)
			continue
		}
		if oldest == nil || c.seq < oldest.seq {
			oldest = c
		}
		if c.op.Kind == op.Kind && c.op.Subject == op.Subject {
			same++
			if oldestSame == nil || c.seq < oldestSame.seq {
				oldestSame = c
			}
		}
	}
	if same >= perSubject {
		delete(d.challenges, oldestSame.ID)
	} else if len(d.challenges) >= challengesMax {
		delete(d.challenges, oldest.ID)
	}
}

// takeLocked uses up a challenge for op, whatever becomes of the proof.
func (d *Desk) takeLocked(op Operation, id string) (Challenge, error) {
	c := d.challenges[id]
	if c == nil {
		return Challenge{}, ErrNewChallenge
	}
	if c.op.Kind != op.Kind || c.op.Subject != op.Subject {
		return Challenge{}, ErrNewChallenge // not used up: it was never this one's
	}
	delete(d.challenges, id)
	if d.clock.Over(c.life) {
		return Challenge{}, ErrNewChallenge
	}
	if c.op.Digest != op.Digest {
		return Challenge{}, differs(c.op.Parts, op.Parts)
	}
	return c.Challenge, nil
}

// partsTold bounds what one refusal names.
const partsTold = 5

// differs is ErrNewChallenge that names the parts which are not what they were
// when the challenge was issued.
func differs(was, is []Part) error {
	names := changedParts(was, is)
	if len(names) == 0 {
		return ErrNewChallenge
	}
	told := strings.Join(names[:min(len(names), partsTold)], ", ")
	if more := len(names) - partsTold; more > 0 {
		told += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("not what the challenge was issued for: %s; look again: %w", told, ErrNewChallenge)
}

// changedParts are the names of what is on one side only or differs, each once.
func changedParts(was, is []Part) []string {
	var names []string
	for _, pair := range [2][2][]Part{{was, is}, {is, was}} {
		for _, p := range pair[0] {
			if !slices.Contains(pair[1], p) && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// Prove checks a proof for a widening operation other than a card. It says yes
// once for each challenge. Errors: ErrNewChallenge, or the verifier's.
func (d *Desk) Prove(op Operation, p Proof) error {
	if op.Kind == KindApprove {
		return ErrNewChallenge // a card is approved by Approve alone
	}
	var c Challenge
	err := d.do(func() (err error) {
		c, err = d.takeLocked(op, p.ChallengeID)
		return err
	})
	if err != nil {
		return err
	}
	return d.o.Verify(p.Kind, c.Bytes, p.MAC)
}
