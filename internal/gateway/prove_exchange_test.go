package gateway

import (
	"context"
	"net/http"
	"testing"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
)

// triedLease is a secret on trial that is exchanged.
type triedLease struct {
	*fakeLease
	at Place
}

func (l *triedLease) Ready(ctx context.Context, _ actions.Narrow, x Exchange) error {
	body := "client_secret="
	return x(ctx, TokenSend{
		Identity: "bot", Generation: onTrial | 1, Step: StepToken, At: l.at,
		Request: executor.TokenRequest{
			Method: http.MethodPost, Path: l.at.Path, Body: []byte(body), ContentType: "application/x-www-form-urlencoded",
			Hole: &executor.Hole{Offset: len(body), Form: true}, Timeout: 15 * time.Second,
		},
	}, fakeSecret{}, func(TokenAnswer) error { return nil })
}

// A token endpoint that shows a secret which is only tried says nothing of the stored
// one.
func TestEchoOfATriedSecretSuspendsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T) {
		r := newRig(t, whoAmI)
		k := r.withTokens()
		r.g.used = func(u Used) { t.Errorf("told: %+v", u) }
		r.remote.answer(func(string, string, string) reply { return reply{status: 400, body: clientSecret} })
		r.vault.mu.Lock()
		r.vault.leases++
		r.vault.mu.Unlock()
		trial := &triedLease{&fakeLease{v: r.vault, generation: onTrial | 1}, k.at}
		defer trial.Close()
		p, err := r.g.ProveExchange(t.Context(), Proving{Identity: "bot", By: "uid 7", Trial: trial})
		r.must(err)
		if p.OK || p.Code != fault.InvalidResponse || r.vault.suspects != 0 {
			t.Errorf("%+v, %d suspicions", p, r.vault.suspects)
		}
	})
}
