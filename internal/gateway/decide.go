package gateway

import (
	"context"

	"chatelaine/internal/actions"
	"chatelaine/internal/approvals"
	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// decide finds out whether a person must be asked about the frozen plan, asks,
// and waits. What was shown is the plan whose digest is then spent, once.
func (g *Gateway) decide(ctx context.Context, p planned) (approved, error) {
	free := func() error { return nil }
	if p.byOperator() {
		return approved{planned: p, decision: "asked by the operator", spend: free}, nil
	}
	switch p.plan.Ask() {
	case actions.AskNever:
		return approved{planned: p, decision: "not asked", spend: free}, nil
	case actions.AskSession:
		if g.coveredBySession(p) {
			return approved{planned: p, decision: "session", spend: free}, nil
		}
	}
	return g.askPerson(ctx, p)
}

// coveredBySession says whether the session's card named this action with this
// very contract, target and identity.
func (g *Gateway) coveredBySession(p planned) bool {
	want, ok := pinOf(p.set, p.contract)
	return ok && g.sessions.Pins(p.session.ID)[p.contract.Action()] == want
}

func (g *Gateway) askPerson(ctx context.Context, p planned) (approved, error) {
	if err := g.cardRate.take(p.session.ID); err != nil {
		return approved{}, err
	}
	t, err := g.desk.Open(approvals.CardRequest{
		CallID: p.call.RequestID(), SessionID: p.session.ID, Agent: p.session.Name,
		CallerLabel: CallerLabel(p.session), Plan: p.plan,
	})
	if err != nil {
		return approved{}, err
	}
	if err := p.call.SetState(ledger.Waiting); err != nil {
		t.Withdraw(fault.Cancelled)
		return approved{}, fault.New(fault.Cancelled, err)
	}
	defer g.sessions.Hold(p.session.ID)()
	p.live.ask(t, &p)
	defer p.live.asked()
	if err := g.sessions.Alive(p.session.ID); err != nil {
		t.Withdraw(fault.SessionRevoked) // it ended before its card was there to be withdrawn
	}
	d, err := t.Wait(ctx)
	if err != nil {
		return approved{}, err
	}
	digest := p.plan.Digest()
	return approved{
		planned: p, decision: "approved by " + d.By, cardID: t.Card().ID,
		spend: func() error { return t.Spend(digest) },
	}, nil
}
