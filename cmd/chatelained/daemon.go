package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"chatelaine/internal/actions"
	"chatelaine/internal/approvals"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/durable"
	"chatelaine/internal/executor"
	"chatelaine/internal/gateway"
	"chatelaine/internal/ledger"
	"chatelaine/internal/operatorapi"
	"chatelaine/internal/sessions"
	"chatelaine/internal/usage"
	"chatelaine/internal/vault"
)

// daemon is the whole program as a value: the rooms, joined.
type daemon struct {
	places client.Places
	config Config
	self   instance
	log    *slog.Logger

	lock     *durable.Lock
	store    *durable.Store
	vault    *vault.Vault
	record   *auditlog.Log
	ledger   *ledger.Ledger
	usage    *usage.Book
	sessions *sessions.Registry
	desk     *approvals.Desk
	exec     *executor.Executor
	gateway  *gateway.Gateway
	metrics  *prometheus.Registry
	notify   *notifier
	alert    *alerter
	ignored  []string // variables of the start that were left out

	accepting sync.Mutex // one unlock or reload at a time: both compare or change what is accepted

	known identitiesKnown

	mu        sync.Mutex
	listeners []operatorapi.Listener // guarded by mu
	problems  []string               // guarded by mu; what is not served until an operator accepts it
	mistakes  []string               // guarded by mu; of files that did not load
}

// openDaemon takes the state folder and opens every room. On an error what was
// opened is closed again.
func openDaemon(pl client.Places, cfg Config, log *slog.Logger, env environment) (d *daemon, err error) {
	d = &daemon{
		places: pl, config: cfg, log: log, ignored: env.ignored,
		notify: newNotifier(cfg.Notify, env.forChildren, log), alert: newAlerter(cfg.Alert, env.forChildren, log),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if _, err := os.Stat(pl.State); err != nil {
		return d, usageError{fmt.Errorf("no state in %s: run `chatelained init` first", pl.State)}
	}
	if d.lock, err = durable.LockDir(pl.State, holder("serve")); err != nil {
		return d, err
	}
	if d.self, err = readInstance(pl.State); err != nil {
		return d, usageError{err}
	}
	if err := d.self.checkMachine(pl.State); err != nil {
		return d, usageError{err}
	}
	set, problems := actions.LoadSetAtStart(pl.SiteFile(), pl.Contracts())
	if len(problems) > 0 {
		return d, usageError{renderProblems(problems)}
	}
	return d, d.openRooms(set)
}

func (d *daemon) openRooms(set *actions.Set) (err error) {
	pl, cfg, clock := d.places, d.config, durable.BootClock()
	if d.vault, err = vault.Open(vaultPath(pl), vaultOptions(cfg, d.self)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	sources, err := sourcesOf(cfg, d.vault)
	if err != nil {
		return usageError{fmt.Errorf("configuration: %w", err)}
	}
	d.vault.SetSources(sources)
	recipients, err := readRecipients(pl)
	if err != nil {
		return err
	}
	d.record, err = auditlog.Open(auditlog.Options{Dir: auditPath(pl), Recipients: recipients, OnLatch: d.latched})
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	buckets := slices.Concat(ledger.Buckets(), sessions.Buckets(), usage.Buckets())
	if d.store, err = durable.OpenStore(ledgerPath(pl), storeLimit, buckets...); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	d.usage = usage.Open(d.store)
	if d.ledger, err = ledger.Open(d.store, ledger.Options{Keep: cfg.LedgerKeep}); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if err := d.ledger.SetRecordFloor(d.record.RecoveredSeq()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if d.sessions, err = sessions.Open(d.store, sessions.Options{Clock: clock, Absolute: cfg.SessionLife, Idle: cfg.SessionIdle}); err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	d.exec = executor.New(executor.Options{MaxBody: cfg.AnswerBytes})
	d.desk = approvals.NewDesk(approvals.Options{
		DaemonID: d.self.ID, Verify: d.verifyProof, CardLife: cfg.CardLife, Clock: clock,
		OnOpen: d.cardOpened, OnClose: func(c approvals.Card) { d.gateway.Publish("card", c.ID) },
		OnLate: func(c approvals.Card, m approvals.Mark) { d.gateway.LateDecision(c.ID, m.Decision, m.By) },
	})
	d.joinGateway(set)
	return nil
}

func (d *daemon) joinGateway(set *actions.Set) {
	d.metrics = prometheus.NewRegistry()
	d.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	d.gateway = gateway.New(gateway.Deps{
		Set: set, Vault: linePort{d.vault}, Executor: d.exec, Ledger: d.ledger, Sessions: d.sessions,
		Desk: d.desk, Log: d.record, Metrics: gateway.NewMetrics(d.metrics), Logger: d.log,
		Limits:     gateway.Limits{Calls: d.config.Calls, CallsPerTarget: d.config.CallsPerTarget, Answer: d.config.AnswerBytes},
		OnRejected: d.alert.rejected, OnUsed: d.identityUsed,
	})
	d.gateway.RegisterState(d.metrics)
	d.metrics.MustRegister(modeGauge(d.Mode()))
	d.sessions.OnEnd(func(s sessions.Session, reason string) { d.gateway.SessionEnded(s, reason) })
	d.metrics.MustRegister(identityMetrics{d})
	d.vault.OnLock(d.locked)
	d.vault.OnSuspend(d.suspended)
}

// close gives everything back, in the opposite order.
func (d *daemon) close() error {
	var errs []error
	if d.vault != nil {
		d.vault.Lock("the daemon stops")
	}
	if d.sessions != nil {
		d.sessions.Close()
	}
	if d.exec != nil {
		d.exec.Close()
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.record != nil {
		errs = append(errs, d.record.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Unlock())
	}
	return errors.Join(errs...)
}

func (d *daemon) openSealed() error {
	ledgerKeys, err := d.keys("ledger")
	if err != nil {
		return err
	}
	defer ledgerKeys.wipe()
	if err := d.ledger.Unlock(ledger.Keys{Index: ledgerKeys.index, Wrap: ledgerKeys.wrap}); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	sessionKeys, err := d.keys("sessions")
	if err != nil {
		return err
	}
	defer sessionKeys.wipe()
	if err := d.sessions.Unlock(sessions.Keys{Index: sessionKeys.index, Wrap: sessionKeys.wrap}); err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	if err := d.unlockUsage(); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	return d.gateway.TakeUp()
}

// sweepEvery is how often outcomes that are too old are forgotten: they are kept
// for days, so an hour more or less does not matter.
const sweepEvery = time.Hour

// sweep forgets what is older than ledger.keep, until ctx ends.
func (d *daemon) sweep(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := d.ledger.Sweep(); err != nil {
				d.log.Warn("old outcomes were not swept", "cause", err.Error())
			}
		}
	}
}

// keyPair is copied out of the vault's subkeys for a room that keeps its own.
type keyPair struct{ index, wrap []byte }

func (k keyPair) wipe() { clear(k.index); clear(k.wrap) }

func (d *daemon) keys(room string) (keyPair, error) {
	var k keyPair
	for label, into := range map[string]*[]byte{room + " index": &k.index, room + " wrap": &k.wrap} {
		s, err := d.vault.Subkey(label)
		if err != nil {
			return k, err
		}
		s.Use(func(b []byte) { *into = append([]byte(nil), b...) })
		s.Wipe()
	}
	return k, nil
}

// locked runs when the vault locks, for whatever reason: cards end first, then
// the keys of the other rooms go, then connections that carry a credential.
func (d *daemon) locked(reason string) {
	d.gateway.Locked(reason)
	d.closeSealed()
	d.exec.CloseIdle()
}

// closeSealed drops the keys of the rooms that are sealed under the vault's.
func (d *daemon) closeSealed() {
	d.ledger.Lock()
	d.sessions.Lock()
	d.lockUsage()
}

// proofPassphrase is the one kind of proof that this release takes.
const proofPassphrase = "passphrase"

func (d *daemon) verifyProof(kind string, challenge [32]byte, mac []byte) error {
	if kind != proofPassphrase {
		return refused{fmt.Errorf("proofs of kind %q are not enrolled", kind)}
	}
	return refusal(d.vault.CheckProof(challenge[:], mac))
}

func (d *daemon) cardOpened(c approvals.Card) {
	d.gateway.Publish("card", c.ID)
	d.log.Info("card open", "card", c.ID, "action", c.Action, "request_id", c.CallID, "agent", c.Agent)
	d.notify.send(c.Sentence)
}

func (d *daemon) latched(err error) {
	d.log.Error("the record cannot be written; nothing is sent until a restart", "cause", err.Error())
}

// Load reads contracts and targets, whole or not at all, and puts nothing in
// force: a person looks at what it would change and proves over that.
func (d *daemon) Load() (operatorapi.Loaded, error) {
	set, problems := loadSet(d.places)
	if len(problems) > 0 {
		texts := make([]string, 0, min(len(problems), mistakesTold+1))
		for _, p := range problems[:min(len(problems), mistakesTold)] {
			texts = append(texts, p.Error())
		}
		if more := len(problems) - mistakesTold; more > 0 {
			texts = append(texts, fmt.Sprintf("and %d more", more))
		}
		if d.mistaken(texts) { // who only asks again does not fill the log
			d.gateway.ReloadFailed(texts)
		}
		return operatorapi.Loaded{}, refuseInput("", "%s; the old set stays in force\n%s", mistakes(len(problems)), strings.Join(texts, "\n"))
	}
	d.mistaken(nil)
	return operatorapi.Loaded{
		Change: d.gateway.Compare(set),
		Accept: func(ctx context.Context, by string) error { return d.accept(ctx, set, by) },
	}, nil
}

// mistakesTold bounds what one broken file puts into an answer and into status:
// more than a person mends before the next try.
const mistakesTold = 100

// loadSet reads the set of a running daemon.
func loadSet(pl client.Places) (*actions.Set, actions.Problems) {
	return guarded(pl.Config, func() (*actions.Set, actions.Problems) { return actions.LoadSet(pl.SiteFile(), pl.Contracts()) })
}

// guarded makes a panic of ours over a file a mistake like any other: no file
// takes a running daemon down.
func guarded(dir string, load func() (*actions.Set, actions.Problems)) (set *actions.Set, problems actions.Problems) {
	defer func() {
		if v := recover(); v != nil {
			set, problems = nil, actions.Problems{{File: dir, Message: fmt.Sprintf("the loader failed over these files (%T); this is a fault of the daemon, please report it", v)}}
		}
	}()
	return load()
}

// mistaken keeps what is wrong with the files for `status`, and says whether it is
// news.
func (d *daemon) mistaken(texts []string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	news := !slices.Equal(d.mistakes, texts)
	d.mistakes = texts
	return news
}

// accept puts in force what a person has proved: record, vault, then the set.
func (d *daemon) accept(ctx context.Context, set *actions.Set, by string) error {
	d.accepting.Lock()
	defer d.accepting.Unlock()
	if err := d.gateway.Replace(ctx, set, by, func() error { return d.acceptSet(set) }); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = nil
	return nil
}

// Version, ID, Mode, Listeners and Problems are for `status`.
func (d *daemon) Version() string { return version }

// ID is the instance's.
func (d *daemon) ID() string { return d.self.ID }

// Listeners says what is served.
func (d *daemon) Listeners() []operatorapi.Listener {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]operatorapi.Listener{}, d.listeners...)
}

// Problems says what an operator should look at.
func (d *daemon) Problems() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(append([]string{}, d.mistakes...), d.problems...)
}

func (d *daemon) listens(name, address, state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = append(d.listeners, operatorapi.Listener{Name: name, Address: address, State: state})
}
