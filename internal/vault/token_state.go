package vault

import (
	"slices"
	"sync/atomic"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

const (
	// longestMargin and marginPart are how long before its end a token is no longer
	// given out: a call that takes it now may arrive a while later, and clocks and
	// roundings differ. For a token of minutes a full minute would be too much.
	longestMargin = time.Minute
	marginPart    = 10

	// renewPart of a token's life in percent is when it is renewed off the path of
	// calls: well before the margin of every token, and late enough that a token of
	// an hour costs one exchange an hour.
	renewPart = 80

	// exchangeBackoff is how long a failed exchange answers for the ones after it.
	// A hundred calls do not then become a hundred requests to a token endpoint that
	// is down or says no, and a person who mends it does not wait long. A new secret
	// has a generation of its own and waits for nothing.
	exchangeBackoff = 5 * time.Second
)

// phase is where the token of one identity, generation and narrowing stands.
type phase string

// The phases. A token is there in good and renewing; an exchange runs in minting
// and renewing.
const (
	phaseNone     phase = "none"     // never asked for, or forgotten
	phaseMinting  phase = "minting"  // calls wait for the exchange
	phaseGood     phase = "good"     // given out
	phaseRenewing phase = "renewing" // given out, and the next one is on its way
	phaseSpent    phase = "spent"    // the token ended or was refused, or no exchange brought one
)

// phases is every way from one phase to another. Besides, each is dropped, which
// is none again, by a lock, another generation, a deletion and a suspension.
var phases = map[phase][]phase{
	phaseNone:     {phaseMinting},
	phaseMinting:  {phaseGood, phaseSpent},
	phaseGood:     {phaseRenewing, phaseSpent},
	phaseRenewing: {phaseGood, phaseMinting}, // minting: the old token ended or was refused meanwhile
	phaseSpent:    {phaseMinting, phaseNone},
}

// heldToken is one token. Leases and the store share it, and the last of them wipes
// it: so a call that holds it when the vault locks can finish, as with any other
// credential.
type heldToken struct {
	text    secret.Secret
	scanner *secret.Scanner
	at      time.Time     // when it came
	good    time.Duration // how long it is given out from then
	renew   time.Duration // when it is renewed
	refs    atomic.Int32
}

// newHeldToken makes a token with one reference. The search for it is made ready
// once, however many calls use it.
func newHeldToken(m minted) *heldToken {
	t := &heldToken{text: m.token, at: m.at, good: m.life - min(longestMargin, m.life/marginPart), renew: m.life * renewPart / 100}
	t.text.Use(func(b []byte) {
		part := secret.New(signature(b))
		defer part.Wipe()
		t.scanner = secret.NewScanner(part)
	})
	t.refs.Store(1)
	return t
}

func (t *heldToken) hold() *heldToken {
	t.refs.Add(1)
	return t
}

func (t *heldToken) release() {
	if t != nil && t.refs.Add(-1) == 0 {
		t.text.Wipe()
		t.scanner.Wipe()
	}
}

// age is how old it is: by the monotonic clock, or by the time of day where that
// says more, since the monotonic one may stand still while the machine sleeps.
func (t *heldToken) age(now time.Time) time.Duration {
	return max(now.Sub(t.at), now.Round(0).Sub(t.at.Round(0)))
}

func (t *heldToken) over(now time.Time) bool { return t.age(now) >= t.good }

// tokenEntry is one line of the store.
type tokenEntry struct {
	phase  phase
	narrow Narrow
	token  *heldToken   // in good and renewing
	flight *tokenFlight // in minting and renewing
	used   bool         // since it came

	err      error     // in spent: what the last exchange ended with, nil where the token just ended
	again    time.Time // no exchange before
	rejected time.Time // when the target last refused a token
}

// move makes one move of the table. Another move is a mistake in this package, and
// going on could send a secret twice or keep a token for ever.
func (e *tokenEntry) move(to phase) {
	if !slices.Contains(phases[e.phase], to) {
		panic("vault: no way of a token from " + string(e.phase) + " to " + string(to))
	}
	e.phase = to
}

// settle takes note of the time.
func (e *tokenEntry) settle(now time.Time) {
	if e.token != nil && e.token.over(now) {
		e.lose()
	}
}

// lose lets go of the token that is there.
func (e *tokenEntry) lose() {
	e.token.release()
	e.token = nil
	if e.phase == phaseRenewing {
		e.move(phaseMinting)
		return
	}
	e.move(phaseSpent)
	e.err, e.again = nil, time.Time{}
}

// begin starts an exchange.
func (e *tokenEntry) begin(f *tokenFlight) {
	e.flight = f
	if e.phase == phaseGood {
		e.move(phaseRenewing)
		return
	}
	e.move(phaseMinting)
}

// came takes what an exchange brought.
func (e *tokenEntry) came(t *heldToken, used bool) {
	e.token.release()
	e.token, e.flight, e.used, e.err, e.again = t, nil, used, nil, time.Time{}
	e.move(phaseGood)
}

// failed takes what an exchange ended with. A token that is still good stays, and is
// renewed again a little later.
func (e *tokenEntry) failed(err error, now time.Time) {
	e.settle(now)
	e.flight = nil
	e.again = now.Add(max(exchangeBackoff, fault.From(err).RetryAfter()))
	if e.token != nil {
		e.move(phaseGood)
		return
	}
	e.err = err
	if ours(err) {
		e.err, e.again = nil, time.Time{}
	}
	e.move(phaseSpent)
}

// ours says whether the daemon itself ended an exchange, so that nobody is spared a
// request by waiting: after an unlock the next call must not still hear of the lock. A
// source is somebody else.
func ours(err error) bool {
	if IsSource(err) {
		return false
	}
	switch fault.CodeOf(err) {
	case fault.VaultLocked, fault.IdentityUnavailable, fault.AuditUnavailable, fault.Overloaded, fault.Internal:
		return true
	}
	return false
}

// refused takes note that the target refused the token. A second refusal within the
// back-off says that a fresh token does not help: then calls are told so without an
// exchange until it is over.
func (e *tokenEntry) refused(now time.Time) {
	soon := !e.rejected.IsZero() && now.Sub(e.rejected) < exchangeBackoff
	e.rejected = now
	e.lose()
	if soon && e.phase == phaseSpent {
		e.err = fault.Newf(fault.RemoteUnauthenticated, "the target refuses each new token")
		e.again = now.Add(exchangeBackoff)
	}
}

// idle says whether nothing is known that the next call needs.
func (e *tokenEntry) idle(now time.Time) bool {
	return e.phase == phaseSpent && !now.Before(e.again) && now.Sub(e.rejected) >= exchangeBackoff
}
