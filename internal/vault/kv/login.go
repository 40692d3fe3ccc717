package kv

import (
	"context"
	"encoding/json/jsontext"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"

	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

const (
	// renewPart: a login is renewed when a third of its life is left, so that a
	// server that is away for a while costs nothing.
	renewPart = 3
	// endMargin is kept from the end of a login: an answer takes time, and clocks
	// run apart.
	endMargin = 5 * time.Second
	// mostLife is what a server may say at most: 0 means that a login does not end.
	mostLife = 10 * 365 * 24 * time.Hour
	// maxToken is far above the tokens of both servers.
	maxToken = 4 << 10
)

// login is the token in use. Its times are on the monotonic clock, from when the
// answer came.
type login struct {
	gate chan struct{} // held through what asks the server for a token; of size 1

	mu        sync.Mutex // guards all below; never held while asking
	token     secret.Secret
	since     time.Time
	life      time.Duration // 0: it does not end
	renewable bool
	drops     uint64 // counts drops, so that a login under way is not kept
}

// lease is what the server says about a token.
type lease struct {
	life      time.Duration
	renewable bool
}

// current returns the token while it is good, and whether it is time to renew it.
func (l *login) current() (token secret.Secret, renew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token.IsZero() {
		return secret.Secret{}, false
	}
	if l.life == 0 {
		return l.token, false
	}
	left := l.life - time.Since(l.since)
	if left <= min(endMargin, l.life/renewPart) {
		return secret.Secret{}, false
	}
	return l.token, l.renewable && left < l.life/renewPart
}

func (l *login) dropped() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drops
}

// keep holds a new token, unless all was dropped since.
func (l *login) keep(token secret.Secret, le lease, drops uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drops != drops {
		token.Wipe()
		return false
	}
	l.token, l.since, l.life, l.renewable = token, time.Now(), le.life, le.renewable
	return true
}

// extend sets the life of the same token anew.
func (l *login) extend(le lease, drops uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drops == drops {
		l.since, l.life, l.renewable = time.Now(), le.life, le.renewable
	}
}

// forget drops a token that the server refused, unless another is there already.
func (l *login) forget(token secret.Secret) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token.Equal(token) {
		l.token = secret.Secret{} // not wiped: others may be sending it
	}
}

func (l *login) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drops++
	l.token.Wipe()
	l.token = secret.Secret{}
}

// session returns a token to use now, and whether it was made for this. Who waits
// for a login of somebody else takes that one.
func (s *Source) session(ctx context.Context) (token secret.Secret, fresh bool, err error) {
	if token, renew := s.login.current(); !token.IsZero() && !renew {
		return token, false, nil
	}
	if err := s.enter(ctx); err != nil {
		return secret.Secret{}, false, err
	}
	defer s.leave()
	token, renew := s.login.current()
	if !token.IsZero() && renew {
		s.renew(ctx, token) // where that fails, what is left of its life is used
	}
	if !token.IsZero() {
		return token, false, nil
	}
	token, err = s.logIn(ctx)
	return token, true, err
}

// tend renews a login that is near its end. Where there is none, nobody needs one.
func (s *Source) tend(ctx context.Context) {
	if _, renew := s.login.current(); !renew || s.enter(ctx) != nil {
		return
	}
	defer s.leave()
	if token, renew := s.login.current(); renew {
		s.renew(ctx, token)
	}
}

func (s *Source) enter(ctx context.Context) error {
	select {
	case s.login.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return s.fail(vault.ErrSourceUnavailable, "a login is under way, and did not end in time")
	}
}

func (s *Source) leave() { <-s.login.gate }

// logIn gets a token in exchange for the credential; the gate is held.
func (s *Source) logIn(ctx context.Context) (secret.Secret, error) {
	drops := s.login.dropped()
	cred, err := s.o.Credential(ctx)
	if err != nil {
		return secret.Secret{}, err
	}
	token, le := cred, lease{}
	if s.o.RoleID != "" {
		token, le, err = s.appRole(ctx, cred)
		cred.Wipe()
	} else {
		le, err = s.lookUp(ctx, token)
	}
	if err != nil {
		token.Wipe()
		return secret.Secret{}, err
	}
	if !s.login.keep(token, le, drops) {
		return secret.Secret{}, s.fail(vault.ErrSourceUnavailable, "the vault was locked during the login")
	}
	return token, nil
}

// appRole logs in (POST auth/approle/login).
func (s *Source) appRole(ctx context.Context, cred secret.Secret) (secret.Secret, lease, error) {
	var form []byte
	defer func() { clear(form) }()
	var err error
	cred.Use(func(b []byte) {
		const begin, middle = `{"role_id":`, `,"secret_id":`
		form = make([]byte, 0, len(begin+middle+"}")+quotedRoom(len(s.o.RoleID))+quotedRoom(len(b)))
		if form, err = jsontext.AppendQuote(append(form, begin...), s.o.RoleID); err != nil {
			return
		}
		form = append(form, middle...)
		form, err = jsontext.AppendQuote(form, b)
		form = append(form, '}')
	})
	if err != nil {
		return secret.Secret{}, lease{}, s.fail(vault.ErrSourceDenied, "the secret id is not text")
	}
	resp, err := s.client.Logical().WriteRawWithContext(ctx, "auth/"+s.o.AppRole+"/login", form)
	if err != nil {
		if resp != nil && resp.StatusCode == http.StatusBadRequest {
			return secret.Secret{}, lease{}, s.fail(vault.ErrSourceDenied, "the role id or the secret id is not taken; put the secret id again")
		}
		return secret.Secret{}, lease{}, s.refusal(ctx, resp, err)
	}
	return s.granted(resp)
}

// granted reads the token of a login.
func (s *Source) granted(resp *api.Response) (secret.Secret, lease, error) {
	r, err := s.answer(resp)
	if err != nil {
		return secret.Secret{}, lease{}, err
	}
	defer r.wipe()
	if r.Auth == nil || r.Auth.Token.Kind() != '"' {
		return secret.Secret{}, lease{}, s.fail(vault.ErrSourceLying, "the answer to the login has no token")
	}
	text, err := jsontext.AppendUnquote(make([]byte, 0, len(r.Auth.Token)), r.Auth.Token)
	defer clear(text[:cap(text)])
	if err != nil || !plain(text) {
		return secret.Secret{}, lease{}, s.fail(vault.ErrSourceLying, "the token of the login is not one")
	}
	le, ok := leaseOf(r.Auth.Lease, r.Auth.Renewable)
	if !ok {
		return secret.Secret{}, lease{}, s.fail(vault.ErrSourceLying, "the life of the login cannot be true")
	}
	return secret.New(text), le, nil
}

// plain says whether text can stand in a header.
func plain(text []byte) bool {
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(text) > 0 && len(text) <= maxToken
}

func leaseOf(seconds int64, renewable bool) (lease, bool) {
	if seconds < 0 || seconds > int64(mostLife/time.Second) {
		return lease{}, false
	}
	return lease{time.Duration(seconds) * time.Second, renewable}, true
}

// lookUp asks how long a given token lives (GET auth/token/lookup-self). A policy
// may forbid that; then the token is used as it is.
func (s *Source) lookUp(ctx context.Context, token secret.Secret) (lease, error) {
	ok := false
	token.Use(func(b []byte) { ok = plain(b) })
	if !ok {
		return lease{}, s.fail(vault.ErrSourceDenied, "the token has characters that no token has; put it again")
	}
	resp, err := s.client.Logical().ReadRawWithContext(withToken(ctx, token), "auth/token/lookup-self")
	if err != nil {
		if resp != nil && resp.StatusCode == http.StatusForbidden {
			return lease{}, nil
		}
		return lease{}, s.refusal(ctx, resp, err)
	}
	r, err := s.answer(resp)
	if err != nil {
		return lease{}, err
	}
	defer r.wipe()
	if r.Data == nil {
		return lease{}, s.fail(vault.ErrSourceLying, "it says nothing about its own token")
	}
	le, ok := leaseOf(r.Data.TTL, r.Data.Renewable)
	if !ok {
		return lease{}, s.fail(vault.ErrSourceLying, "the life of the token cannot be true")
	}
	return le, nil
}

// renew asks for more life (POST auth/token/renew-self); the gate is held. A
// refusal changes nothing: before its end the token is good, after it a login is
// made.
func (s *Source) renew(ctx context.Context, token secret.Secret) {
	drops := s.login.dropped()
	resp, err := s.client.Logical().WriteRawWithContext(withToken(ctx, token), "auth/token/renew-self", []byte("{}"))
	if err != nil {
		return
	}
	r, err := s.answer(resp)
	if err != nil {
		return
	}
	defer r.wipe()
	if r.Auth == nil {
		return
	}
	if le, ok := leaseOf(r.Auth.Lease, r.Auth.Renewable); ok && le.life > 0 {
		s.login.extend(le, drops)
	}
}
