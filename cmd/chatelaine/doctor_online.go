package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"chatelaine/internal/actions"
	"chatelaine/internal/doctor"
	"chatelaine/internal/executor"
)

// onlineAtOnce is how many connections are tried at a time: few enough for any
// machine, enough that one that hangs does not hold up the rest.
const onlineAtOnce = 8

// online connects to each destination of the site file as it lies here. It does
// so as the caller and not through the daemon: so it works while none runs, and
// no one gains a way to make the daemon open connections.
func (a *app) online(ctx context.Context, p doctor.Places) []doctor.Finding {
	set, problems := actions.LoadSet(p.Site, p.Contracts)
	if len(problems) > 0 {
		return []doctor.Finding{{ID: onlineSite, Verdict: doctor.Unseen, Attack: "stand in for a target on the network",
			Detail: plural(len(problems), "mistake", "mistakes") + " in contracts or targets.yaml; the first: " + problems[0].Error(), WayOut: "chatelaine contract lint"}}
	}
	x := executor.New(executor.Options{})
	defer x.Close()
	found := append(reachAll(ctx, x, endpoints(set)), overSSH(set)...)
	slices.SortFunc(found, func(a, b doctor.Finding) int { return strings.Compare(a.ID, b.ID) })
	return found
}

// overSSH are the targets that this release does not connect to.
func overSSH(set *actions.Set) []doctor.Finding {
	var out []doctor.Finding
	for _, t := range set.Targets() {
		if place, ok := t.SSH(); ok {
			out = append(out, doctor.Finding{ID: onlineTarget + t.Name(), Verdict: doctor.Unseen, Attack: "stand in for " + place.Address() + " on the network",
				Detail: "a target over SSH, which this release does not connect to", WayOut: "compare its host_keys with what ssh-keyscan shows"})
		}
	}
	return out
}

// reached is one destination by its check's name.
type reached struct {
	id string
	to executor.Endpoint
}

// endpoints are all targets over HTTPS, and the places where identities exchange
// their secrets, each once.
func endpoints(set *actions.Set) []reached {
	var out []reached
	for _, t := range set.Targets() {
		if s := t.Scheme(); s == "https" || s == "http" {
			out = append(out, reached{onlineTarget + t.Name(), t})
		}
	}
	for _, i := range set.Identities() {
		if place := i.Token(); place != nil {
			out = append(out, reached{onlineToken + i.Name(), place})
		}
	}
	return out
}

func reachAll(ctx context.Context, x *executor.Executor, all []reached) []doctor.Finding {
	found := make([]doctor.Finding, len(all))
	places := make(chan struct{}, onlineAtOnce)
	var wg sync.WaitGroup
	for i, r := range all {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			found[i] = reachOne(ctx, x, r)
		})
	}
	wg.Wait()
	return found
}

func reachOne(ctx context.Context, x *executor.Executor, r reached) doctor.Finding {
	f := doctor.Finding{ID: r.id, Verdict: doctor.Solved, Attack: "stand in for " + r.to.Host() + " on the network"}
	if err := x.Reach(ctx, r.to); err != nil {
		f.Verdict, f.Detail = doctor.NotSolved, "calls would not be sent: "+err.Error()
		f.WayOut = "look at url, ca, pin and allow of targets.yaml, and at the way there"
		return f
	}
	switch {
	case r.to.Scheme() == "http":
		f.Detail = "reached over plain http, on this machine"
	case len(r.to.Pins()) > 0:
		f.Detail = fmt.Sprintf("reached, and one of its %d pinned keys was shown", len(r.to.Pins()))
	case len(r.to.CAPEM()) > 0:
		f.Detail = "reached, with a certificate of its own authority"
	default:
		f.Detail = "reached, with a certificate of an authority that this machine trusts"
	}
	return f
}
