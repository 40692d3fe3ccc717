package demo

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/client"
)

// code is how a call ended, in one word.
func code(e client.Envelope) string {
	if e.Err == nil {
		return "OK"
	}
	return string(e.Err.Code)
}

// call performs an action as the agent.
func (p *play) call(ctx context.Context, action, id, input string) (client.Envelope, error) {
	e, err := p.agent.Call(ctx, action, client.CallRequest{Input: jsontext.Value(input), RequestID: id})
	if err != nil {
		return e, fmt.Errorf("the agent's call of %s: %w", action, err)
	}
	return e, nil
}

// deploy is the input of a deployment.
func deploy(environment, version string) string {
	return fmt.Sprintf(`{"service":"api","environment":%q,"version":%q,"reason":"fixes payment retries"}`, environment, version)
}

// arrived is how many requests for a version reached the release service.
func (p *play) arrived(version string) int {
	n := 0
	for _, r := range p.service.Received() {
		if r.Version == version {
			n++
		}
	}
	return n
}

// ask is what an agent may find and what it may not say.
func (p *play) ask(ctx context.Context) error {
	list, err := p.agent.Actions(ctx)
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	var names, seen []string
	for _, a := range list {
		names = append(names, a.Name)
		seen = append(seen, fmt.Sprintf("%s (%s)", a.Name, a.Effect))
	}
	p.claim(claim{"discovery", strings.Join(seen, ", "), slices.Equal(names, shipped), strings.Join(shipped, ", ")})

	before := len(p.service.Received())
	input := strings.TrimSuffix(deploy("production", "2.14.3"), "}") + `,"url":"https://evil.example/"}`
	e, err := p.call(ctx, "deploy_release", "", input)
	if err != nil {
		return err
	}
	sent := len(p.service.Received()) - before
	named := e.Err != nil && len(e.Err.Fields) == 1 && e.Err.Fields[0].Pointer == "/url"
	p.claim(claim{"an extra field is refused", fmt.Sprintf("%s, %s sent", code(e), count(sent, "request")),
		code(e) == "INVALID_ARGUMENT" && named && sent == 0, "INVALID_ARGUMENT that names /url, 0 requests sent"})
	p.bytes("asked", input)
	p.bytes("answered", from(string(e.Raw), `"error":`))
	return nil
}
