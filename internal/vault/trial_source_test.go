package vault

import (
	"errors"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

// triedFrom makes a trial of what lies at the source of k.
func triedFrom(t *testing.T, v *Vault) *Lease {
	t.Helper()
	l, err := v.TrialFrom(t.Context(), "a", "manager:entry", false)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A refresh token that lies at a source and was used up by a trial is replaced there,
// so that what is stored afterwards works.
func TestTrialOfARefreshTokenAtASource(t *testing.T) {
	k := &keeper{value: sec(firstRefresh)}
	v, _ := create(t, cheap)
	v.SetSources([]SourceSetup{{Source: k, Kind: "test", Keep: time.Hour}})
	put(t, v, "a", "an older refresh token", refreshBinding())
	e := rotates()
	l := triedFrom(t, v)
	defer l.Close()
	if err := l.Ready(t.Context(), Narrow{}, e.exchange); err != nil {
		t.Fatal(err)
	}
	if !k.value.Equal(sec(refreshOf(1))) {
		t.Error("the source holds the one that was used up")
	}
	if got := stored(t, v, "a"); got != "an older refresh token" {
		t.Errorf("the vault holds %q", got)
	}

	// It was replaced since the trial began: what is there now is sent.
	later := triedFrom(t, v)
	defer later.Close()
	k.value = sec("of another daemon, 0123456789")
	if err := later.Ready(t.Context(), Narrow{}, e.exchange); err != nil || !strings.Contains(e.last().whole, "of+another+daemon") {
		t.Errorf("sent %q, %v", e.last().whole, err)
	}
}

// A source that takes no values proves nothing.
func TestTrialOfARefreshTokenThatCannotBeWritten(t *testing.T) {
	k := &keeper{value: sec(firstRefresh), fail: errors.Join(ErrSourceDenied)}
	v, _ := create(t, cheap)
	v.SetSources([]SourceSetup{{Source: k, Kind: "test", Keep: time.Hour}})
	put(t, v, "a", "an older refresh token", refreshBinding())
	l := triedFrom(t, v)
	defer l.Close()
	wantCode(t, l.Ready(t.Context(), Narrow{}, rotates().exchange), fault.IdentityUnavailable)
}
