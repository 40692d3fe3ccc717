package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"chatelaine/internal/fault"
	"chatelaine/internal/operatorapi"
)

// identitiesKnown is what was last seen of the identities while the vault was
// open: a lock is no reason to stop warning. Names and times only.
type identitiesKnown struct {
	mu     sync.Mutex
	last   map[string]identityKnown // guarded by mu
	warned map[string]time.Time     // guarded by mu; when the log last said so
}

type identityKnown struct {
	generation uint64
	expires    time.Time // zero where it is not known
	suspended  bool
}

// lookAtIdentities is what is known now.
func (d *daemon) lookAtIdentities() map[string]identityKnown {
	d.known.mu.Lock()
	defer d.known.mu.Unlock()
	if d.vault.CheckOpen() == nil {
		now := map[string]identityKnown{}
		for name, info := range d.storedIdentities() {
			now[name] = identityKnown{info.Generation, info.Expires, info.Suspended}
		}
		if d.vault.CheckOpen() == nil { // else it was locked between the two and is empty
			d.known.last = now
		}
	}
	return maps.Clone(d.known.last)
}

// expiryState is the word for an identity that could be used but for its expiry.
func (d *daemon) expiryState(expires, now time.Time) string {
	switch {
	case expires.IsZero():
	case !now.Before(expires):
		return operatorapi.IdentityExpired
	case expires.Sub(now) < d.config.WarnBefore:
		return operatorapi.IdentityExpiring
	}
	return operatorapi.IdentityStored
}

// IdentityProblems says which identities a person should look at, and why.
func (d *daemon) IdentityProblems() []string {
	out := []string{}
	known, now := d.lookAtIdentities(), time.Now()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		k := known[name]
		if text := d.expiryText(k.expires, now); text != "" {
			out = append(out, name+": "+text)
		}
		if k.suspended {
			out = append(out, name+": it is suspended, because answers repeated its secret; replace it at its issuer, then `chatelaine identity rotate "+name+"`")
		}
		use := d.usage.Get(name)
		if use.Code == fault.RemoteUnauthenticated && use.Generation == k.generation && !use.Failed.Before(use.Used) {
			out = append(out, fmt.Sprintf("%s: the remote system refused its secret at %s; get a new one, then `chatelaine identity rotate %s`", name, use.Failed.UTC().Format(time.RFC3339), name))
		}
	}
	return out
}

// expiryText is "" where there is nothing to say.
func (d *daemon) expiryText(expires, now time.Time) string {
	when := expires.UTC().Format(time.RFC3339)
	switch d.expiryState(expires, now) {
	case operatorapi.IdentityExpired:
		return "its secret expired at " + when + "; replace it"
	case operatorapi.IdentityExpiring:
		return fmt.Sprintf("its secret expires at %s, in %d days; replace it before", when, int(expires.Sub(now)/(24*time.Hour)))
	}
	return ""
}

const (
	// expiryEvery is how often the expiries are looked at: they are dates.
	expiryEvery = time.Hour
	// expirySaid is how often the log says the same: once a day is enough to be
	// seen, and does not drown anything else.
	expirySaid = 24 * time.Hour
)

// watchExpiry warns in the log until ctx ends.
func (d *daemon) watchExpiry(ctx context.Context) {
	t := time.NewTicker(expiryEvery)
	defer t.Stop()
	for {
		d.warnExpiry(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// warnExpiry says once a day of each identity that its secret ends.
func (d *daemon) warnExpiry(now time.Time) {
	known := d.lookAtIdentities()
	d.known.mu.Lock()
	defer d.known.mu.Unlock()
	if d.known.warned == nil {
		d.known.warned = map[string]time.Time{}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		text := d.expiryText(known[name].expires, now)
		switch said := d.known.warned[name]; {
		case text == "":
			delete(d.known.warned, name)
		case said.IsZero() || now.Sub(said) >= expirySaid:
			d.log.Warn("a secret ends", "identity", name, "expires", known[name].expires.UTC(), "what", text)
			d.known.warned[name] = now
		}
	}
}

// suspended tells of an identity whose secret came back in answers.
func (d *daemon) suspended(name string) {
	d.log.Error("an identity is suspended: answers repeated its secret; replace it at its issuer", "identity", name)
	d.notify.send("Identity " + name + " is suspended: answers repeated its secret")
}

// identityMetrics tells of the identities of the site file; their names are the
// closed set of its label.
type identityMetrics struct{ d *daemon }

var (
	expiryMetric = prometheus.NewDesc("chatelaine_identity_expiry_timestamp_seconds",
		"When an identity's secret expires, where that is known.", []string{"identity"}, nil)
	lastUseMetric = prometheus.NewDesc("chatelaine_identity_last_use_timestamp_seconds",
		"When something was last sent with an identity's secret.", []string{"identity"}, nil)
	suspendedMetric = prometheus.NewDesc("chatelaine_identity_suspended",
		"1 while an identity is suspended, because answers repeated its secret.", []string{"identity"}, nil)
)

// Describe implements prometheus.Collector.
func (identityMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- expiryMetric
	ch <- lastUseMetric
	ch <- suspendedMetric
}

// Collect implements prometheus.Collector.
func (m identityMetrics) Collect(ch chan<- prometheus.Metric) {
	known := m.d.lookAtIdentities()
	for _, id := range m.d.gateway.Set().Identities() {
		name := id.Name()
		send := func(desc *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, name)
		}
		if t := m.d.usage.Get(name).Used; !t.IsZero() {
			send(lastUseMetric, float64(t.Unix()))
		}
		k, there := known[name]
		if !there {
			continue
		}
		if !k.expires.IsZero() {
			send(expiryMetric, float64(k.expires.Unix()))
		}
		suspended := 0.0
		if k.suspended {
			suspended = 1
		}
		send(suspendedMetric, suspended)
	}
}
