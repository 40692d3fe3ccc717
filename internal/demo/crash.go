package demo

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/demo/release"
)

const (
	crashID      = "deploy-0002"
	crashVersion = "2.15.0"
	// sendLimit is how long a call may take until it arrives at the release
	// service.
	sendLimit = time.Minute
)

// crash kills the daemon when a deployment was sent and not answered, and asks
// again for the same call.
func (p *play) crash(ctx context.Context) error {
	p.service.Switch(release.Silent)
	defer p.service.Switch(release.Honest)
	input := deploy("test", crashVersion)
	lost := make(chan error, 1)
	go func() {
		_, err := p.agent.Call(ctx, "deploy_release", client.CallRequest{Input: jsontext.Value(input), RequestID: crashID})
		lost <- err
	}()
	err := until(ctx, sendLimit, "the deployment to reach the release service", func() (bool, error) { return p.arrived(crashVersion) > 0, nil })
	p.p.kill()
	answered := <-lost == nil
	if err != nil {
		return err
	}
	heard := "no answer"
	if answered {
		heard = "an answer"
	}
	p.claim(claim{"killed before the answer", fmt.Sprintf("the release service has %s, the agent has %s", count(p.arrived(crashVersion), "request"), heard),
		p.arrived(crashVersion) == 1 && !answered, "1 request and no answer"})
	p.service.Switch(release.Honest)
	return p.again(ctx, input)
}

// again starts the daemon after the crash.
func (p *play) again(ctx context.Context, input string) error {
	if err := p.p.start(ctx); err != nil {
		return err
	}
	p.op.Close()
	p.op = p.p.operator()
	s, err := p.op.Status(ctx)
	if err != nil {
		return err
	}
	p.claim(claim{"it starts locked", fmt.Sprintf("vault %s, %d sessions authorised", s.Vault.State, s.Sessions.Authorised),
		s.Vault.State == "sealed" && s.Sessions.Authorised == 0, "a sealed vault, 0 sessions"})
	if err := p.unlock(ctx); err != nil {
		return err
	}
	if err := p.session(ctx); err != nil {
		return err
	}
	e, err := p.call(ctx, "deploy_release", crashID, input)
	if err != nil {
		return err
	}
	p.claim(claim{"same request_id again", fmt.Sprintf("%s, unlocked, in a new session of %s", code(e), agentName),
		code(e) == "OUTCOME_UNKNOWN" && e.RequestID == crashID, "OUTCOME_UNKNOWN of the same call; the agent got " + string(e.Raw)})
	p.bytes("answered", from(string(e.Raw), `"error":`))
	e, err = p.call(ctx, "deploy_release", "", input)
	if err != nil {
		return err
	}
	p.claim(claim{"same input, without an id", fmt.Sprintf("%s, joined to %s", code(e), e.RequestID),
		code(e) == "OUTCOME_UNKNOWN" && e.RequestID == crashID, "OUTCOME_UNKNOWN of " + crashID})
	n := p.arrived(crashVersion)
	p.claim(claim{"not sent twice", fmt.Sprintf("the release service has received %s for %s", count(n, "request"), crashVersion), n == 1, "1 request"})
	return nil
}
