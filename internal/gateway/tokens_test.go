package gateway

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"sync"
	"time"

	"chatelaine/internal/actions"
	"chatelaine/internal/executor"
	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// clientKind is an identity that is exchanged for a token at the remote's own
// address.
const clientKind = "kind: oauth2_client, client_id: bot, token: {url: 'http://127.0.0.1:7/oauth2/token', allow: [loopback]}"

// clientSecret is what the exchange sends.
const clientSecret = "s3cret-of-the-client-0001"

// fakeTokens stands for the vault's store of tokens: one at a time, one exchange for
// all who wait.
type fakeTokens struct {
	mu     sync.Mutex
	token  string        // "" for none
	flight chan struct{} // closed when the exchange is over
	err    error         // how the last one ended
	drops  int           // how often all was forgotten
	count  int           // tokens that came
	gone   int           // that the target refused
	asked  []actions.Narrow
	at     Place
	panics bool
}

// withTokens makes the rig's identity one that is exchanged.
func (r *rig) withTokens() *fakeTokens {
	r.vault.tokens = &fakeTokens{at: Place{Scheme: "http", Host: "127.0.0.1", Port: 7, Path: "/oauth2/token"}}
	r.identity = clientKind
	r.writeSite("")
	r.g.set.Store(r.load())
	r.revoke() // what it permits was pinned to the set before
	r.agent()
	return r.vault.tokens
}

// drop forgets the token, as a lock and a token's end do.
func (k *fakeTokens) drop() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.token = ""
	k.drops++
}

func (k *fakeTokens) mint(ctx context.Context, x Exchange) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	if k.flight == nil {
		k.flight = make(chan struct{})
		go k.fly(context.WithoutCancel(ctx), x)
	}
	over := k.flight
	k.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-over:
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *fakeTokens) fly(ctx context.Context, x Exchange) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	body := "grant_type=client_credentials&client_secret="
	token := ""
	k.mu.Lock()
	drops := k.drops
	k.mu.Unlock()
	err := x(ctx, TokenSend{
		Identity: "bot", Generation: 1, Step: StepToken, At: k.at,
		Request: executor.TokenRequest{
			Method: http.MethodPost, Path: "/oauth2/token", Body: []byte(body), ContentType: "application/x-www-form-urlencoded",
			Hole: &executor.Hole{Offset: len(body), Form: true}, Timeout: 15 * time.Second,
		},
	}, fakeSecret{}, func(a TokenAnswer) error {
		switch {
		case k.panics:
			panic("planted")
		case a.Status == http.StatusUnauthorized:
			return fault.Newf(fault.RemoteUnauthenticated, "invalid_client")
		case a.Status == http.StatusTooManyRequests:
			return fault.Newf(fault.RemoteRateLimited, "slow down")
		case a.Status >= 500:
			return fault.Newf(fault.UpstreamUnavailable, "status %d", a.Status)
		case a.Status != http.StatusOK || !strings.HasPrefix(string(a.Body), "token-"):
			return fault.Newf(fault.InvalidResponse, "no token")
		}
		token = string(a.Body)
		return nil
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && k.drops != drops {
		err = fault.Newf(fault.VaultLocked, "locked while the exchange ran")
	}
	if k.err = err; err == nil {
		k.token = token
		k.count++
	}
	close(k.flight)
	k.flight = nil
}

type fakeSecret struct{}

func (fakeSecret) Attach(o executor.Outgoing, _ executor.Connection) error {
	return o.FillBody(func(dst []byte) []byte { return append(dst, clientSecret...) })
}

func (fakeSecret) Scan(b []byte) []secret.Hit {
	if i := strings.Index(string(b), clientSecret); i >= 0 {
		return []secret.Hit{{Encoding: "raw", Offset: i, Length: len(clientSecret)}}
	}
	return nil
}

func (l *fakeLease) ClientCertificate(executor.Connection) (*tls.Certificate, error) {
	return nil, nil
}

// Ready takes the token that is there, or waits for the exchange.
func (l *fakeLease) Ready(ctx context.Context, n actions.Narrow, x Exchange) error {
	k := l.v.tokens
	if k == nil {
		return nil
	}
	k.mu.Lock()
	k.asked = append(k.asked, n)
	l.token = k.token
	k.mu.Unlock()
	if l.token != "" {
		return nil
	}
	if err := k.mint(ctx, x); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	l.token = k.token
	return nil
}

// Rejected drops the token that was attached.
func (l *fakeLease) Rejected() {
	k := l.v.tokens
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone++
	if k.token == l.token {
		k.token = ""
	}
}
