package operatorapi

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"chatelaine/internal/approvals"
	"chatelaine/internal/gateway"
	"chatelaine/internal/sessions"
)

// planReads opens the read session of the connection that brings the proof.
func (a *API) planReads(_ string, of object) (statement, error) {
	if err := of.only(); err != nil {
		return statement{}, err
	}
	return statement{
		covers: fmt.Sprintf("read inputs, journals and refused answers on one connection for %d minutes", int(ReadSessionLife.Minutes())),
		do: func(c *call) (any, error) {
			if c.conn == nil {
				return nil, needsReadSession()
			}
			if err := a.g.Record(c.r.Context(), opRead, "", c.by, nil); err != nil {
				return nil, err
			}
			return map[string]any{"expires_at": c.conn.open(time.Now()).UTC()}, nil
		},
	}, nil
}

// planAuthorize permits, for this session, exactly the changes that its card
// lists now; what is added or changed later asks again.
func (a *API) planAuthorize(id string, of object) (statement, error) {
	if err := of.only(); err != nil {
		return statement{}, err
	}
	s, ok := a.sessions.Get(id)
	switch {
	case !ok:
		return statement{}, notFound("no such session")
	case s.State == sessions.StateAuthorised:
		return statement{}, sessions.ErrDecided
	case s.State != sessions.StatePending:
		return statement{}, sessions.ErrEnded
	}
	permits, pins := a.g.Permits()
	return statement{
		covers: authorizeSentence(s, permits),
		facts:  append(permitFacts(permits, pins), factOf("which session of that name ends", s.Conflict)),
		do: func(c *call) (any, error) {
			if err := a.g.Record(c.r.Context(), opAuthorize, id, c.by, map[string]any{"permits": len(permits)}); err != nil {
				return nil, err
			}
			if err := a.sessions.Authorize(id, pins, c.by); err != nil {
				return nil, err
			}
			a.g.Publish("session", id)
			return a.sessionNamed(id, permits)
		},
	}, nil
}

func authorizeSentence(s sessions.Session, permits []gateway.Permit) string {
	text := fmt.Sprintf("let agent %s act in session %s", s.Name, s.ID)
	if s.Conflict {
		text += ", ending the other session of that name"
	}
	var names []string
	for _, p := range permits {
		names = append(names, p.Action+" on "+p.Target)
	}
	if len(names) == 0 {
		return text + "; every change is asked about each time"
	}
	// All of them: what a session may change without asking is what is decided.
	return text + "; without asking again: " + strings.Join(names, ", ")
}

// permitFacts is one fact for each action: the lines shown and the pin kept.
func permitFacts(permits []gateway.Permit, pins map[string]string) []approvals.Part {
	var order []string
	lines := map[string][]gateway.Permit{}
	for _, p := range permits {
		if lines[p.Action] == nil {
			order = append(order, p.Action)
		}
		lines[p.Action] = append(lines[p.Action], p)
	}
	out := make([]approvals.Part, 0, len(order)+1)
	for _, action := range order {
		out = append(out, factOf("what is permitted of "+action, map[string]any{"lines": lines[action], "pin": pins[action]}))
	}
	return out
}

// planResolve ends an unresolved call by what a person found out.
func (a *API) planResolve(id string, of object) (statement, error) {
	if err := of.only("happened"); err != nil {
		return statement{}, err
	}
	happened, err := of.flag("happened", true)
	if err != nil {
		return statement{}, err
	}
	i, err := a.g.Unresolved(id)
	if err != nil {
		return statement{}, err
	}
	found := "it did not happen"
	if happened {
		found = "it happened"
	}
	return statement{
		covers: fmt.Sprintf("resolve call %s (%s, asked by %s) as: %s", i.RequestID, i.Action, i.Agent, found),
		of:     map[string]any{"happened": happened},
		facts: []approvals.Part{factOf("the call", map[string]any{
			"request_id": i.RequestID, "action": i.Action, "agent": i.Agent, "uid": i.UID, "claimed_at": i.ClaimedAt.UnixNano(),
		})},
		do: func(c *call) (any, error) {
			if err := a.g.Resolve(c.r.Context(), id, happened, c.by); err != nil {
				return nil, err
			}
			return a.call(c)
		},
	}, nil
}

// secret is the member of that name, decoded. The caller clears it.
func (c *call) secret() ([]byte, error) { return c.bytes(memberSecret) }

// bytes is a member in base64, decoded. The caller clears it.
func (c *call) bytes(member string) ([]byte, error) {
	text, err := c.text(member, true)
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		clear(b)
		return nil, invalid("/"+member, "is not base64")
	}
	return b, nil
}

// planReload reads the files and puts in force exactly what it read.
func (a *API) planReload(_ string, of object) (statement, error) {
	if err := of.only(); err != nil {
		return statement{}, err
	}
	next, err := a.daemon.Load()
	if err != nil {
		return statement{}, err
	}
	ch := next.Change
	facts := []approvals.Part{
		{Name: "the contracts and targets on disk", Digest: ch.To},
		{Name: "the contracts and targets in force", Digest: ch.From},
	}
	for _, p := range ch.Pins {
		facts = append(facts, factOf("action "+p.Action, p.Pin))
	}
	return statement{
		covers: reloadSentence(ch),
		facts:  facts,
		do: func(c *call) (any, error) {
			if err := next.Accept(c.r.Context(), c.by); err != nil {
				return nil, err
			}
			return a.contracts(c)
		},
	}, nil
}

// digestShown is how many hexadecimal digits of a set's digest a sentence has.
const digestShown = 12

func reloadSentence(ch gateway.Change) string {
	text := fmt.Sprintf("put the files in force as they are now: set %s, %d contracts", hex.EncodeToString(ch.To[:])[:digestShown], len(ch.Pins))
	if len(ch.Changed) > 0 {
		text += "; new or changed: " + some(ch.Changed)
	}
	if len(ch.Gone) > 0 {
		text += "; gone: " + some(ch.Gone)
	}
	return text
}

// someShown bounds the names in one sentence; the proof covers them all.
const someShown = 8

func some(names []string) string {
	text := strings.Join(names[:min(len(names), someShown)], ", ")
	if more := len(names) - someShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
