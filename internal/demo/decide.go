package demo

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"strings"
	"time"

	"chatelaine/internal/client"
)

const (
	// productionID and productionVersion are the deployment that a person
	// decides about.
	productionID      = "deploy-0001"
	productionVersion = "2.14.3"
	// resultWait is how long the agent waits for the result of an approved
	// call: the release service answers at once.
	resultWait = 10 * time.Second
)

// decide is a production deployment: asked for, shown, approved, sent once.
func (p *play) decide(ctx context.Context) error {
	input := deploy("production", productionVersion)
	e, err := p.call(ctx, "deploy_release", productionID, input)
	if err != nil {
		return err
	}
	p.claim(claim{"the agent is told to wait", fmt.Sprintf("%s, %s sent", code(e), count(p.arrived(productionVersion), "request")),
		code(e) == "APPROVAL_REQUIRED" && p.arrived(productionVersion) == 0, "APPROVAL_REQUIRED, 0 requests sent"})
	card, err := p.card(ctx)
	if err != nil {
		return err
	}
	if err := p.guessed(ctx, card); err != nil {
		return err
	}
	r, err := p.p.run(ctx, "chatelaine", "", []string{"approve", productionID, "--proof-fd", "3"}, operatorPassphrase)
	if err != nil {
		return err
	}
	p.claim(claim{"approved with a proof", fmt.Sprintf("exit code %d of chatelaine approve %s", r.exit, productionID), r.exit == 0, "exit code 0; it said " + r.said()})
	e, err = p.agent.Result(ctx, productionID, resultWait)
	if err != nil {
		return fmt.Errorf("the result of the approved call: %w", err)
	}
	p.sentOnce()
	p.claim(claim{"the result", code(e) + ", the six facts that the contract selects", e.OK, "OK; the agent got " + string(e.Raw)})
	if !e.OK {
		return nil
	}
	p.bytes("answered", from(string(e.Raw), `"data":`))
	return p.lookUp(ctx, e)
}

// card shows what the operator is asked, as chatelaine approvals prints it.
func (p *play) card(ctx context.Context) (client.Card, error) {
	out, err := p.p.must(ctx, "", []string{"approvals", productionID})
	if err != nil {
		return client.Card{}, err
	}
	cards, err := p.op.Approvals(ctx)
	if err != nil {
		return client.Card{}, err
	}
	var lines []string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if label := strings.TrimSpace(line); strings.HasPrefix(label, "Card:") || strings.HasPrefix(label, "Request:") || strings.HasPrefix(label, "Lapses:") {
			continue // ids and times: not what a person decides about
		}
		lines = append(lines, clip(line, bytesWidth))
	}
	want := "Deploy version " + productionVersion + " of api to production"
	ok := len(cards) == 1 && len(lines) > 0 && lines[0] == want
	p.claim(claim{"the operator sees a card", fmt.Sprintf("%s, chatelaine approvals prints it:", count(len(cards), "card")), ok, "1 card that begins: " + want})
	p.bytes("the card", lines...)
	if !ok {
		return client.Card{}, fmt.Errorf("there is no card to decide about: %s", out)
	}
	return cards[0], nil
}

// guess is what an agent may try: it has no operator passphrase.
const guess = "let me approve this"

// guessed is somebody who approves without knowing the operator passphrase.
func (p *play) guessed(ctx context.Context, card client.Card) error {
	r, err := p.p.run(ctx, "chatelaine", "", []string{"approve", productionID, "--proof-fd", "3"}, guess)
	if err != nil {
		return err
	}
	now, err := p.op.Approval(ctx, card.ID)
	if err != nil {
		return err
	}
	seen := "the proof was taken"
	if strings.Contains(r.err, string(client.ProofRefused)) {
		seen = string(client.ProofRefused)
	}
	sent := p.arrived(productionVersion)
	p.claim(claim{"a guessed passphrase", fmt.Sprintf("%s, the card is still %s, %s sent", seen, now.State, count(sent, "request")),
		r.exit == 1 && seen == string(client.ProofRefused) && now.State == "open" && sent == 0,
		"PROOF_REFUSED, the card open, 0 requests sent; it said " + r.said()})
	return nil
}

// sentOnce claims what the release service received of the deployment.
func (p *play) sentOnce() {
	n, right := 0, 0
	where := "nowhere"
	for _, r := range p.service.Received() {
		if r.Version != productionVersion {
			continue
		}
		n++
		where = r.Method + " " + r.Path
		if r.Authorised && r.Key != "" && r.Status == 201 {
			right++
		}
	}
	seen := count(n, "request") + " with the token and an idempotency key"
	if n != right {
		seen = fmt.Sprintf("%s, but %d with the token and an idempotency key", count(n, "request"), right)
	}
	p.claim(claim{"the daemon sent it, once", seen, n == 1 && right == 1, "1 request with the token and an idempotency key, answered 201"})
	p.bytes("sent to", where)
}

// lookUp asks for the deployment that was started; no person is asked.
func (p *play) lookUp(ctx context.Context, started client.Envelope) error {
	var facts struct {
		ID string `json:"deployment_id"`
	}
	if err := json.Unmarshal(started.Data, &facts); err != nil {
		return err
	}
	e, err := p.call(ctx, "get_deployment", "", fmt.Sprintf(`{"service":"api","environment":"production","deployment_id":%q}`, facts.ID))
	if err != nil {
		return err
	}
	var state struct {
		State string `json:"state"`
	}
	if e.OK {
		if err := json.Unmarshal(e.Data, &state); err != nil {
			return err
		}
	}
	p.claim(claim{"looked up afterwards", fmt.Sprintf("%s, %s is %s", code(e), facts.ID, state.State), state.State == "healthy", "OK, healthy; the agent got " + string(e.Raw)})
	return nil
}
