package vault

import (
	"context"
	"errors"
	"strings"
	"testing"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// A panic in an exchange ends that exchange, tells nothing of what was read, and the
// next call asks again.
func TestPanicInAnExchange(t *testing.T) {
	v, _ := create(t, cheap)
	put(t, v, "a", firstRefresh, refreshBinding())
	bad := &endpoint{answer: func(int, sent) (TokenAnswer, error) { panic(plantedAnswer) }}
	_, err := carried(t, v, "a", bad.exchange)
	wantCode(t, err, fault.Internal)
	if strings.Contains(err.Error(), plantedAnswer) {
		t.Error(err)
	}
	wantCarried(t, v, "a", grants().exchange, tokenOf(1))
}

type panicking struct{ *fakeSource }

func (panicking) Fetch(context.Context, string) (secret.Secret, error) { panic(plantedAnswer) }

// So does one in a fetch.
func TestPanicInAFetch(t *testing.T) {
	v, _ := create(t, cheap)
	v.SetSources([]SourceSetup{{Source: panicking{&fakeSource{}}, Kind: "test"}})
	_, err := v.PutIdentity(t.Context(), "a", bearer(), secret.Secret{}, PutOptions{Source: "bao:entry"})
	if !errors.Is(err, ErrSourceLying) || strings.Contains(err.Error(), plantedAnswer) {
		t.Error(err)
	}
}
