package vault

import (
	"context"
	"sync"
	"time"

	"chatelaine/internal/fault"
)

// exchangeTimeout bounds a whole exchange: two requests, and the save of what one
// of them brought.
const exchangeTimeout = 3 * tokenTimeout

// tokenKey names one token.
type tokenKey struct {
	name       string
	generation uint64
	narrow     string
}

// tokens keeps tokens in memory and runs one exchange at a time for each. Nothing of
// it is ever written. It is safe for concurrent use; its lock may be taken while that
// of the vault is held, never the other way round.
type tokens struct {
	mu      sync.Mutex // guards all below and every entry and flight
	entries map[tokenKey]*tokenEntry
	lines   map[string]chan struct{} // see queue
}

// tokenFlight is one exchange under way and those who wait for it.
type tokenFlight struct {
	landed  chan struct{} // closed once waiters have their answer
	over    chan struct{} // closed once nothing of it runs any more
	told    bool          // landed is closed
	waiting int
	token   *heldToken // one reference as long as somebody waits
	err     error
}

// mint is one exchange. It is called without a lock.
type mint func(ctx context.Context) (minted, error)

// guarded is the mint where a panic is an end like another: nobody else would catch
// it, and a server's bytes take no daemon down.
func (m mint) guarded(ctx context.Context) (got minted, err error) {
	defer func() {
		if v := recover(); v != nil {
			got, err = minted{}, fault.Newf(fault.Internal, "panic in an exchange (%T)", v) // v itself may hold what was read
		}
	}()
	return m(ctx)
}

// ready returns a token that is good now, with a reference for the caller: the one
// that is there, or that of an exchange which all who come meanwhile share. Each
// waits as long as its own context.
func (s *tokens) ready(ctx context.Context, key tokenKey, n Narrow, m mint) (*heldToken, error) {
	s.mu.Lock()
	e, now := s.entry(key, n), time.Now()
	e.settle(now)
	if e.token != nil {
		e.used = true
		defer s.mu.Unlock()
		return e.token.hold(), nil
	}
	if e.flight == nil {
		if e.err != nil && now.Before(e.again) {
			defer s.mu.Unlock()
			return nil, e.err
		}
		s.begin(ctx, key, e, m)
	}
	f := e.flight
	f.waiting++
	s.mu.Unlock()
	return s.wait(ctx, f)
}

// entry returns the line of a token, new where there is none. s.mu is held.
func (s *tokens) entry(key tokenKey, n Narrow) *tokenEntry {
	e := s.entries[key]
	if e == nil {
		if s.entries == nil {
			s.entries = map[tokenKey]*tokenEntry{}
		}
		e = &tokenEntry{phase: phaseNone, narrow: n}
		s.entries[key] = e
	}
	return e
}

// begin starts the exchange. It has a context of its own: one who gives up waiting
// does not take it from the others, and an answer that replaces a secret is heard.
// s.mu is held.
func (s *tokens) begin(ctx context.Context, key tokenKey, e *tokenEntry, m mint) *tokenFlight {
	f := &tokenFlight{landed: make(chan struct{}), over: make(chan struct{})}
	e.begin(f)
	go func() {
		defer close(f.over)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTimeout)
		defer cancel()
		got, err := m.guarded(ctx)
		s.land(key, f, got, err)
	}()
	return f
}

func (s *tokens) wait(ctx context.Context, f *tokenFlight) (*heldToken, error) {
	select {
	case <-f.landed:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiting--
	switch {
	case !f.told:
		return nil, fault.Newf(fault.UpstreamUnavailable, "the call ended while it waited for a token: %w", context.Cause(ctx))
	case f.err != nil:
		return nil, f.err
	}
	t := f.token.hold()
	if f.waiting == 0 {
		f.token.release()
	}
	return t, nil
}

// land gives what an exchange brought to the store and to all who wait. Of a line
// that was dropped meanwhile nothing is kept.
func (s *tokens) land(key tokenKey, f *tokenFlight, got minted, err error) {
	var t *heldToken
	if err == nil {
		t = newHeldToken(got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.told {
		t.release()
		return
	}
	e := s.entries[key]
	if err != nil {
		e.failed(err, time.Now())
		f.tell(err)
		return
	}
	e.came(t, f.waiting > 0)
	if f.waiting > 0 {
		f.token = t.hold()
	}
	f.tell(nil)
}

// tell lets the waiters go. The store's lock is held.
func (f *tokenFlight) tell(err error) {
	f.err, f.told = err, true
	close(f.landed)
}

// drop forgets every token that which names. Who waits for one is told err; an
// exchange under way ends by itself, and nobody hears of it.
func (s *tokens) drop(which func(tokenKey) bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.entries {
		if !which(key) {
			continue
		}
		e.token.release()
		if e.flight != nil {
			e.flight.tell(err)
		}
		delete(s.entries, key)
	}
}

// rejected says that the target refused this very token. One that came since is
// left alone.
func (s *tokens) rejected(key tokenKey, t *heldToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil && e.token == t {
		e.refused(time.Now())
	}
}

// renew starts the exchanges of tokens that were used and whose end is near, and
// forgets what is of no use. It returns what to wait for.
func (s *tokens) renew(ctx context.Context, with func(tokenKey, Narrow) mint) []*tokenFlight {
	s.mu.Lock()
	defer s.mu.Unlock()
	var begun []*tokenFlight
	now := time.Now()
	for key, e := range s.entries {
		e.settle(now)
		switch {
		case e.idle(now):
			e.move(phaseNone)
			delete(s.entries, key)
		case e.phase == phaseGood && e.used && e.token.age(now) >= e.token.renew && !now.Before(e.again):
			begun = append(begun, s.begin(ctx, key, e, with(key, e.narrow)))
		}
	}
	return begun
}

// queue takes the one place of an identity whose secret each exchange replaces, so
// that no secret is sent that another exchange is just replacing: a server that sees
// an old one again takes the whole grant back. It returns what gives it free.
func (s *tokens) queue(ctx context.Context, name string) (free func(), err error) {
	s.mu.Lock()
	if s.lines == nil {
		s.lines = map[string]chan struct{}{}
	}
	line := s.lines[name]
	if line == nil {
		line = make(chan struct{}, 1)
		s.lines[name] = line
	}
	s.mu.Unlock()
	select {
	case line <- struct{}{}:
		return func() { <-line }, nil
	case <-ctx.Done():
		return nil, fault.Newf(fault.UpstreamUnavailable, "another exchange of the same secret did not end: %w", ctx.Err())
	}
}

func allTokens(tokenKey) bool { return true }

// dropOldTokensLocked drops the tokens of generations that are no more. v.mu is held.
func (v *Vault) dropOldTokensLocked() {
	v.tokens.drop(func(k tokenKey) bool {
		it, ok := v.contents.items[k.name]
		return !ok || it.generation != k.generation || it.suspended
	}, fault.Newf(fault.IdentityUnavailable, "the identity was replaced or deleted meanwhile"))
}
