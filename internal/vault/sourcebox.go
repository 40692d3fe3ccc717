package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

const (
	// DefaultSourceKeep is how long a fetched value is used: short, so that a
	// value that was replaced at its source is in use here soon, and long, so that
	// the source is not in the way of each call.
	DefaultSourceKeep = 5 * time.Minute
	// failedFor is how long a failure is the answer without asking again, so that
	// many calls do not become as many programs or logins.
	failedFor = 2 * time.Second
	// tendEvery is how often values and logins that near their end are looked at.
	// The shortest keep is twice as long.
	tendEvery = 5 * time.Second
	// maxGone is how many fetches in a row may bring a value that was dropped at once.
	maxGone = 3
	// renewFrom: a value in use is fetched anew in the last quarter of its life, off
	// the path of the calls.
	renewFrom = 4
)

// SourceSetup is one source as it was configured. Kind and Place are for people;
// Place also says to where the source's own credential is bound.
type SourceSetup struct {
	Source     Source
	Kind       string
	Place      string
	Credential bool          // it needs an entry of this vault to log in
	Keep       time.Duration // how long a fetched value is used; 0: DefaultSourceKeep
}

// The states of a source's own credential.
const (
	CredentialNone    = "none needed"
	CredentialStored  = "stored"
	CredentialMissing = "missing"
	CredentialMoved   = "bound to another place"
	CredentialLocked  = "vault locked"
	// KindGone is the kind of a source of which only the credential is left.
	KindGone = "not configured"
)

// SourceInfo is what may be shown of a source.
type SourceInfo struct {
	Name, Kind, Place string
	Keep              time.Duration
	Credential        string    // one of Credential…
	Fetched           time.Time // when a value last came; zero: not in this run
	Failed            time.Time // when none came, if that was later
	Failure           string    // in one word of SourceKind
}

// namedSource is a source with what became of the last fetch.
type namedSource struct {
	SourceSetup
	fetched, failed time.Time
	failure         string
}

// fetch asks the source. A panic over what it answers ends one fetch.
func (s *namedSource) fetch(ctx context.Context, reference string) (value secret.Secret, err error) {
	defer func() {
		if v := recover(); v != nil {
			value, err = secret.Secret{}, fmt.Errorf("source %s: %w: panic while its answer was read (%T)", s.Source.Name(), ErrSourceLying, v)
		}
	}()
	return s.Source.Fetch(ctx, reference)
}

// keptValue is what was fetched for one NAME:REFERENCE, or why nothing was.
type keptValue struct {
	value secret.Secret
	err   error
	at    time.Time
	used  bool // since it was fetched
}

// sourceFetch is one fetch that is under way. Who wants the same value waits for it.
type sourceFetch struct {
	anew  bool // who began it wanted a new value in any case
	stale bool // the value was replaced since it began; guarded by the box's lock
	done  chan struct{}
	got   keptValue // to be read after done
}

// sourceBox holds the sources and what came from them. The zero value has none.
type sourceBox struct {
	open func() error // says whether the vault is; set once, before the box is used

	mu      sync.Mutex // guards all below; never held while a source is asked
	all     map[string]*namedSource
	kept    map[string]*keptValue
	fetches map[string]*sourceFetch
	drops   uint64 // counts drops, so that a fetch under way is not kept
}

// SetSources gives the vault its sources, once, before it is used. What they hold
// is dropped when the vault locks.
func (v *Vault) SetSources(list []SourceSetup) {
	b := &v.sources
	b.open = v.CheckOpen
	b.mu.Lock()
	b.all = map[string]*namedSource{}
	for _, s := range list {
		if s.Keep == 0 {
			s.Keep = DefaultSourceKeep
		}
		b.all[s.Source.Name()] = &namedSource{SourceSetup: s}
	}
	b.mu.Unlock()
	v.OnLock(func(string) { b.drop() })
}

// find takes NAME:REFERENCE apart and checks both without asking the source.
func (b *sourceBox) find(text string) (*namedSource, string, error) {
	name, reference, err := SplitSource(text)
	if err != nil {
		return nil, "", err
	}
	b.mu.Lock()
	s := b.all[name]
	b.mu.Unlock()
	if s == nil {
		return nil, "", fmt.Errorf("%w: %s is not in vault.sources of chatelaine.yaml", ErrNoSource, name)
	}
	return s, reference, s.Source.Check(reference)
}

// get returns a copy of a value that is kept, or fetches it. anew fetches in any
// case, and not before another fetch of the same has ended. The caller wipes the
// copy. It fails with VAULT_LOCKED, or what the source answers.
func (b *sourceBox) get(ctx context.Context, text string, anew bool) (secret.Secret, error) {
	s, reference, err := b.find(text)
	if err != nil {
		return secret.Secret{}, err
	}
	for tries := 0; ; {
		f, kept, err := b.board(ctx, s, text, reference, anew)
		if f == nil {
			return kept, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return secret.Secret{}, fmt.Errorf("source %s: %w: the wait was given up", s.Source.Name(), ErrSourceUnavailable)
		}
		if anew && !f.anew {
			continue // it may have begun before what the caller wants to see
		}
		out, err := f.yield()
		if !errors.Is(err, errGone) {
			return out, err
		}
		if tries++; tries == maxGone {
			return secret.Secret{}, fmt.Errorf("source %s: %w: %w", s.Source.Name(), ErrSourceUnavailable, err)
		}
	}
}

// board returns what is kept, or a fetch to wait for.
func (b *sourceBox) board(ctx context.Context, s *namedSource, text, reference string, anew bool) (*sourceFetch, secret.Secret, error) {
	drops := b.dropped() // before the vault is looked at: a lock after that drops what comes
	if err := b.open(); err != nil {
		return nil, secret.Secret{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.kept[text]; !anew && k != nil && k.good(s.Keep) {
		k.used = true
		return nil, copied(k.value), k.err
	}
	if f := b.fetches[text]; f != nil {
		return f, secret.Secret{}, nil
	}
	return b.depart(ctx, s, text, reference, anew, drops), secret.Secret{}, nil
}

func (b *sourceBox) dropped() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.drops
}

// yield returns a copy of what came; done is closed.
func (f *sourceFetch) yield() (secret.Secret, error) {
	if f.got.err != nil {
		return secret.Secret{}, f.got.err
	}
	if out := copied(f.got.value); !out.IsZero() {
		return out, nil
	}
	return secret.Secret{}, errGone
}

// errGone says that what a fetch brought was dropped before it could be used: by a
// lock, which the next look at the vault tells, or because another value takes its
// place.
var errGone = errors.New("its value was dropped or replaced while it was fetched")

func (k *keptValue) good(keep time.Duration) bool {
	if k.err != nil {
		keep = failedFor
	}
	return time.Since(k.at) < keep
}

func copied(s secret.Secret) (out secret.Secret) {
	s.Use(func(b []byte) {
		if len(b) > 0 {
			out = secret.New(b)
		}
	})
	return out
}

// depart begins a fetch that ends also when nobody waits for it any more: the
// next call wants the value too. Its source bounds it. b.mu is held.
func (b *sourceBox) depart(ctx context.Context, s *namedSource, text, reference string, anew bool, drops uint64) *sourceFetch {
	f := &sourceFetch{anew: anew, done: make(chan struct{})}
	if b.fetches == nil {
		b.fetches = map[string]*sourceFetch{}
	}
	b.fetches[text] = f
	go func() {
		value, err := s.fetch(context.WithoutCancel(ctx), reference)
		b.land(f, s, text, keptValue{value: value, err: err, at: time.Now(), used: true}, drops)
	}()
	return f
}

// land keeps what came, unless all was dropped meanwhile.
func (b *sourceBox) land(f *sourceFetch, s *namedSource, text string, got keptValue, drops uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer close(f.done)
	if got.err == nil {
		s.fetched, s.failed, s.failure = got.at, time.Time{}, ""
	} else if fault.CodeOf(got.err) != fault.VaultLocked {
		s.failed, s.failure = got.at, SourceKind(got.err)
	}
	if b.fetches[text] == f { // a drop has cleared them
		delete(b.fetches, text)
	}
	if b.drops != drops || f.stale {
		got.value.Wipe()
		f.got = keptValue{err: errGone}
		return
	}
	f.got = got
	if b.kept == nil {
		b.kept = map[string]*keptValue{}
	}
	if old := b.kept[text]; old != nil {
		if got.err != nil && old.err == nil && old.good(s.Keep) {
			return // what is there is good for a while
		}
		old.value.Wipe()
	}
	b.kept[text] = &got
}

// forget drops one value, so that the next call fetches it. A fetch under way may
// still bring what was there before: nobody gets that.
func (b *sourceBox) forget(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.fetches[text]; f != nil {
		f.stale = true
		delete(b.fetches, text)
	}
	if k := b.kept[text]; k != nil {
		k.value.Wipe()
		delete(b.kept, text)
	}
}

// forgetValue drops a value that somebody refused, unless another is there already.
func (b *sourceBox) forgetValue(text string, refused secret.Secret) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.kept[text]; k != nil && k.err == nil && k.value.Equal(refused) {
		k.value.Wipe()
		delete(b.kept, text)
	}
}

// refused is forgetValue after an exchange that ended so; text may be "".
func (b *sourceBox) refused(text string, sent secret.Secret, err error) {
	if text != "" && fault.CodeOf(err) == fault.RemoteUnauthenticated {
		b.forgetValue(text, sent)
	}
}

// drop forgets every value and every login.
func (b *sourceBox) drop() {
	b.mu.Lock()
	b.drops++
	for _, k := range b.kept {
		k.value.Wipe()
	}
	b.kept, b.fetches = nil, nil
	var all []Source
	for _, s := range b.all {
		all = append(all, s.Source)
	}
	b.mu.Unlock()
	for _, s := range all {
		if t, ok := s.(Tender); ok {
			t.Drop()
		}
	}
}

// WatchSources fetches values in use before the end of their life and renews
// logins, until ctx ends. It does nothing while the vault is locked.
func (v *Vault) WatchSources(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			v.tendSources(ctx)
		}
	}
}

func (v *Vault) tendSources(ctx context.Context) {
	if v.CheckOpen() != nil {
		return
	}
	renew, tenders := v.sources.due()
	for _, t := range tenders {
		t.Tend(ctx)
	}
	for _, text := range renew {
		if s, err := v.sources.refresh(ctx, text); err == nil {
			s.Wipe()
		}
	}
}

// due lists the values to fetch anew, drops those that are over, and lists who
// else has something to do.
func (b *sourceBox) due() (renew []string, tenders []Tender) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for text, k := range b.kept {
		name, _, _ := SplitSource(text)
		s := b.all[name]
		switch left := s.Keep - time.Since(k.at); {
		case !k.good(s.Keep):
			k.value.Wipe()
			delete(b.kept, text)
		case k.err == nil && k.used && left < s.Keep/renewFrom:
			renew = append(renew, text)
		}
	}
	slices.Sort(renew)
	for _, s := range b.all {
		if t, ok := s.Source.(Tender); ok {
			tenders = append(tenders, t)
		}
	}
	return renew, tenders
}

// refresh fetches a value anew and counts it as not used yet: what nobody asks
// for any more is fetched once more at most.
func (b *sourceBox) refresh(ctx context.Context, text string) (secret.Secret, error) {
	s, err := b.get(ctx, text, true)
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.kept[text]; k != nil && err == nil {
		k.used = false
	}
	return s, err
}
