package vault

import (
	"context"
	"errors"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// errNotReady is a mistake of ours: a token is attached that was never asked for.
var errNotReady = errors.New("the lease has no token; Ready comes first")

// Ready returns once the lease can be attached: at once where nothing is exchanged
// or a good token is there, else after one exchange that all who wait share. It
// fails with the coded end of the exchange; nothing of the call is sent then. A
// failed one answers also for the calls of the next seconds.
//
// Where the target refuses the token, Rejected is called; the call itself is not
// sent again.
func (l *Lease) Ready(ctx context.Context, n Narrow, x Exchange) error {
	if l == nil {
		return fault.New(fault.Internal, errLeaseClosed)
	}
	if l.none || !l.binding.Exchanges() {
		return nil
	}
	if l.isOver() {
		return fault.New(fault.Internal, errLeaseClosed)
	}
	key, err := l.binding.tokenKey(l.name, l.generation, n)
	if err != nil {
		return err
	}
	store, m := &l.vault.tokens, l.vault.mint(key, n, x)
	if l.trial {
		store, m = &l.own, l.mint(key, n, x)
	}
	t, err := store.ready(ctx, key, n, m)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		t.release()
		return fault.New(fault.Internal, errLeaseClosed)
	}
	l.key = key
	if n := len(l.tokens); n > 0 && l.tokens[n-1] == t {
		t.release() // a further attempt of the call; the lease has it already
		return nil
	}
	l.tokens = append(l.tokens, t)
	return nil
}

func (l *Lease) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// Rejected says that the target refused what was attached (401): the token is not
// given out again, and the next call gets a new one. Where the secret itself was
// attached and lies at a source, it is fetched anew by the next call. It does nothing
// where nothing was attached.
func (l *Lease) Rejected() {
	t, key := l.token()
	if t == nil {
		l.rejectedSecret()
		return
	}
	store := &l.vault.tokens
	if l.trial {
		store = &l.own
	}
	store.rejected(key, t)
}

// token is the one that is attached: the last that Ready brought.
func (l *Lease) token() (*heldToken, tokenKey) {
	if l == nil {
		return nil, tokenKey{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tokens) == 0 {
		return nil, tokenKey{}
	}
	return l.tokens[len(l.tokens)-1], l.key
}

// setToken writes the token. The secret behind it never goes to the target.
func (l *Lease) setToken(out Outgoing) error {
	t, _ := l.token()
	value := ""
	if t != nil {
		t.text.Use(func(b []byte) {
			if len(b) > 0 {
				value = "Bearer " + string(b)
			}
		})
	}
	if value == "" {
		return fault.New(fault.Internal, errNotReady)
	}
	if err := out.SetHeader("Authorization", value); err != nil {
		return fault.Newf(fault.Internal, "the Authorization header cannot be written: %w", err)
	}
	return nil
}

// scanTokens searches for every token that the lease has had.
func (l *Lease) scanTokens(b []byte) []secret.Hit {
	l.mu.Lock()
	all := append([]*heldToken(nil), l.tokens...)
	l.mu.Unlock()
	var hits []secret.Hit
	for _, t := range all {
		hits = append(hits, t.scanner.Scan(b)...)
	}
	return hits
}

// releaseTokens ends the lease's part in its tokens. l.mu is held.
func (l *Lease) releaseTokens() {
	l.over = true
	for _, t := range l.tokens {
		t.release()
	}
	l.tokens = nil
	if l.trial {
		l.own.drop(allTokens, fault.New(fault.Internal, errLeaseClosed))
	}
}

// tokenKey names the token of a narrowing. Kinds that cannot be narrowed have one.
func (b Binding) tokenKey(name string, generation uint64, n Narrow) (tokenKey, error) {
	key := tokenKey{name: name, generation: generation}
	if b.Kind != KindGitHubApp {
		return key, nil
	}
	s, err := b.scope(n)
	key.narrow = s.key()
	return key, err
}

// Refresh renews the tokens that were used since the last renewal and have reached
// four fifths of their life, each by one exchange, so that no call waits for one. It
// returns when that is done, or ctx ends. The daemon calls it every few seconds. It
// is no use of the vault: that locks by itself as if nobody renewed anything.
func (v *Vault) Refresh(ctx context.Context, x Exchange) {
	v.retryRotations(ctx)
	for _, f := range v.tokens.renew(ctx, func(key tokenKey, n Narrow) mint { return v.mint(key, n, x) }) {
		select {
		case <-f.over:
		case <-ctx.Done():
			return
		}
	}
}

// mint is the exchange of a stored secret. It is read when it is sent, and not when
// the lease was taken: another exchange may have replaced it since.
func (v *Vault) mint(key tokenKey, n Narrow, x Exchange) mint {
	return func(ctx context.Context) (minted, error) {
		o, it, err := v.exchanged(key)
		if err != nil {
			return minted{}, err
		}
		e := exchanging{name: key.name, generation: key.generation, binding: it.binding, narrow: n, send: x}
		if it.binding.Kind == KindOAuth2Refresh {
			return v.mintOnce(ctx, key, e)
		}
		if e.secret, err = v.secretOf(ctx, o, it); err != nil {
			return minted{}, err
		}
		defer e.secret.Wipe()
		out, err := e.run(ctx)
		v.sources.refused(it.source, e.secret, err)
		return out, err
	}
}

// exchanged is the item of a token, as long as it is the one that was asked for.
func (v *Vault) exchanged(key tokenKey) (opened, item, error) {
	o, err := v.current()
	if err != nil {
		return opened{}, item{}, err
	}
	it, err := v.usable(o, key.name)
	if err == nil && it.generation != key.generation {
		err = errReplaced(key.name)
	}
	return o, it, err
}

func errReplaced(name string) error {
	return fault.Newf(fault.IdentityUnavailable, "identity %s was replaced, deleted or suspended meanwhile", name)
}

// secretOf reads a secret wherever it lies. The caller wipes it.
func (v *Vault) secretOf(ctx context.Context, o opened, it item) (secret.Secret, error) {
	if it.source != "" {
		return v.fromSource(ctx, it)
	}
	return v.unsealItem(ctx, o, it)
}

// mint is the exchange of a secret on trial. It keeps the line of its identity: where
// both are the same refresh token, a server takes two exchanges at once for a theft.
func (l *Lease) mint(key tokenKey, n Narrow, x Exchange) mint {
	return func(ctx context.Context) (minted, error) {
		free, err := l.vault.tokens.queue(ctx, key.name)
		if err != nil {
			return minted{}, err
		}
		defer free()
		if err := l.look(ctx); err != nil {
			return minted{}, err
		}
		l.mu.Lock()
		cred := copied(l.cred) // whoever closes the lease meanwhile takes it from no answer's search
		l.mu.Unlock()
		defer cred.Wipe()
		e := exchanging{name: key.name, generation: key.generation, binding: l.binding, narrow: n, send: x, secret: cred}
		e.keep = func(fresh secret.Secret) error { return l.keepTried(ctx, cred, fresh) }
		return e.run(ctx)
	}
}

// look fetches a refresh token on trial from its source anew: a call may have
// replaced it since the trial began.
func (l *Lease) look(ctx context.Context) error {
	if l.source == "" || l.binding.Kind != KindOAuth2Refresh {
		return nil
	}
	s, err := l.vault.sources.get(ctx, l.source, true)
	if err == nil {
		s.Use(func(b []byte) { err = l.binding.checkSecret(b, true) }) // how short it may be was said when it was tried
	}
	if err != nil {
		s.Wipe()
		return fault.Newf(fault.IdentityUnavailable, "identity %s: %w", l.name, err)
	}
	l.tryNext(s)
	return nil
}

// keepTried takes what a server gave in place of a secret on trial, and writes it
// where the secret lies. used is wiped.
func (l *Lease) keepTried(ctx context.Context, used, fresh secret.Secret) error {
	if fresh.Equal(used) {
		fresh.Wipe()
		return nil
	}
	var err error
	if l.source == "" {
		l.vault.noteTrial(l.name, used, fresh)
	} else if err = l.vault.storeAtSource(context.WithoutCancel(ctx), l.source, used, fresh); err != nil {
		err = fault.Newf(fault.IdentityUnavailable, "identity %s: the server replaced its refresh token, and the new one cannot be written where it lies: %w", l.name, err)
	}
	l.tryNext(fresh)
	return err
}

// tryNext makes another secret the one on trial.
func (l *Lease) tryNext(s secret.Secret) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		s.Wipe()
		return
	}
	l.cred.Wipe()
	l.cred = s
}

// run makes the exchange of the binding's kind.
func (e exchanging) run(ctx context.Context) (minted, error) {
	if e.send == nil {
		return minted{}, fault.Newf(fault.Internal, "identity %s: nothing makes exchanges", e.name)
	}
	do := exchangers[e.binding.Kind]
	if do == nil {
		return minted{}, fault.Newf(fault.Internal, "identity %s: kind %s exchanges nothing", e.name, e.binding.Kind)
	}
	return do(e, ctx)
}
