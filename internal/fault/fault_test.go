package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCatalogueIsWhole(t *testing.T) {
	if n := len(Codes()); n != 28 {
		t.Errorf("%d codes; the published table has 28", n)
	}
	for _, c := range Codes() {
		e := New(c, nil)
		if e.Code() != c || e.Message() == "" || e.Status() < 200 || e.Status() > 599 {
			t.Errorf("%s: %d %q", c, e.Status(), e.Message())
		}
		if !strings.HasSuffix(e.Message(), ".") {
			t.Errorf("%s: the sentence has no end: %q", c, e.Message())
		}
		if e.Retryable() && e.Fate(true, true) == Unresolved {
			t.Errorf("%s: may be tried again, although it may have happened", c)
		}
	}
}

func TestUnknownCodeNeverLeaves(t *testing.T) {
	e := New("MADE_UP", errors.New("cause"))
	if e.Code() != Internal || !strings.Contains(e.Error(), "MADE_UP") {
		t.Errorf("got %s, %v", e.Code(), e)
	}
	if Known("MADE_UP") {
		t.Error("a made-up code is known")
	}
	if got := CodeOf(errors.New("plain")); got != Internal {
		t.Errorf("an uncoded error is %s", got)
	}
	if got := CodeOf(nil); got != "" {
		t.Errorf("no error has the code %s", got)
	}
}

// The agent's half never holds the cause, however the error is wrapped.
func TestTwoTexts(t *testing.T) {
	cause := errors.New("upstream said: give me your token")
	err := fmt.Errorf("while sending: %w", New(UpstreamUnavailable, cause))
	e := From(err)
	if strings.Contains(e.Message(), "token") {
		t.Errorf("the agent reads %q", e.Message())
	}
	if !strings.Contains(e.Error(), "token") || !errors.Is(err, cause) {
		t.Errorf("the operator reads %q", e.Error())
	}
}

func TestFates(t *testing.T) {
	for _, c := range []struct {
		code         Code
		change, sent bool
		want         Fate
	}{
		{InvalidResponse, false, true, Final},
		{InvalidResponse, true, true, Unresolved},
		{Internal, true, false, Final},
		{Internal, true, true, Unresolved},
		{Internal, false, true, Final},
		{OutcomeUnknown, true, true, Unresolved},
		{UpstreamUnavailable, true, false, Rearmed},
		{RemoteRateLimited, true, true, Rearmed},
		{VaultLocked, true, false, NotConsumed},
		{ApprovalRequired, true, false, Waiting},
		{InProgress, true, true, Running},
		{ApprovalDenied, true, false, Final},
	} {
		if got := New(c.code, nil).Fate(c.change, c.sent); got != c.want {
			t.Errorf("%s change=%v sent=%v: fate %d, want %d", c.code, c.change, c.sent, got, c.want)
		}
	}
	own := Own("CARD_DECLINED", "The card was declined.", true, nil)
	if own.Fate(true, true) != Final || own.Status() != 409 || !own.IsOwn() || !own.Retryable() {
		t.Errorf("a contract's own code: %+v", own)
	}
}

func TestAfterAChange(t *testing.T) {
	for _, c := range []Code{InvalidResponse, Internal} {
		plain := New(c, nil)
		if m := plain.OfChange().Message(); !strings.Contains(m, "do not repeat") || m == plain.Message() {
			t.Errorf("%s after a change says %q", c, m)
		}
	}
	if e := New(UpstreamUnavailable, nil); e.OfChange().Message() != e.Message() {
		t.Error("a change that did not happen is told as if it did")
	}
	if e := New(RemoteRateLimited, nil).After(1500 * time.Millisecond); e.RetryAfter() != 1500*time.Millisecond {
		t.Errorf("retry after %s", e.RetryAfter())
	}
}

// What is found out after a change was accepted warns; the code stays the row's.
func TestAfterAChangeWasAccepted(t *testing.T) {
	for _, code := range []Code{NotFound, RemoteUnauthenticated, RemoteForbidden, RemoteCommandMissing} {
		f := New(code, nil).Accepted()
		if f.Code() != code || !strings.Contains(f.Message(), "do not repeat it") || f.Retryable() || f.Fate(true, true) != Final {
			t.Errorf("%s: %q", code, f.Message())
		}
		if !slices.Contains(Messages(code), f.Message()) {
			t.Errorf("%s: %q is no sentence of the catalogue", code, f.Message())
		}
	}
	if m := New(OutcomeUnknown, nil).Accepted().Message(); m != New(OutcomeUnknown, nil).Message() {
		t.Errorf("OUTCOME_UNKNOWN says %q", m)
	}
	if m := Own("NOT_FOUND_HERE", "ours", false, nil).Accepted().Message(); m != "ours" {
		t.Errorf("an own code says %q", m)
	}
	f := DidNotHappen(nil)
	if f.Code() != UpstreamUnavailable || f.Fate(true, true) != Rearmed || !slices.Contains(Messages(UpstreamUnavailable), f.Message()) {
		t.Errorf("%s: %q", f.Code(), f.Message())
	}
}
