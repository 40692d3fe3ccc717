package operatorapi

import (
	"context"
	"time"

	"chatelaine/internal/gateway"
	"chatelaine/internal/sessions"
)

func (a *API) status(*call) (any, error) {
	digest, contracts := a.g.Contracts()
	rec := a.g.RecordState()
	state := "writing"
	if rec.Latched != nil {
		state = "latched"
	}
	running, unresolved := a.g.Counts()
	pending, authorised := 0, 0
	for _, s := range a.sessions.List() {
		switch s.State {
		case sessions.StatePending:
			pending++
		case sessions.StateAuthorised:
			authorised++
		}
	}
	problems, looks := a.daemon.Problems(), a.daemon.IdentityProblems()
	if problems == nil {
		problems = []string{}
	}
	if looks == nil {
		looks = []string{}
	}
	return map[string]any{
		"version": a.daemon.Version(), "mode": a.daemon.Mode(), "daemon_id": a.daemon.ID(), "started_at": a.g.Started().UTC(),
		"vault":      a.vault.State(),
		"contracts":  map[string]any{"loaded": len(contracts), "digest": digest, "problems": problems},
		"identities": map[string]any{"problems": looks},
		"record":     recordView{State: state, NextSeq: rec.NextSeq, Epoch: rec.Epoch, Warning: rec.Warn},
		"approvals":  map[string]any{"open": a.g.OpenCards()},
		"sessions":   map[string]any{"pending": pending, "authorised": authorised},
		"calls":      map[string]any{"running": running, "unresolved": unresolved, "damaged": a.g.Damaged()},
		"listeners":  a.daemon.Listeners(),
		"process":    a.daemon.Process(),
	}, nil
}

type recordView struct {
	State   string `json:"state"`
	NextSeq uint64 `json:"next_seq"`
	Epoch   uint64 `json:"epoch"`
	Warning string `json:"warning,omitempty"`
}

type sessionView struct {
	SessionID   string           `json:"session_id"`
	Name        string           `json:"name"`
	State       string           `json:"state"`
	UID         uint32           `json:"uid"`
	Listener    string           `json:"listener"`
	Process     string           `json:"process"`
	PairingCode string           `json:"pairing_code,omitempty"`
	OpenedAt    time.Time        `json:"opened_at"`
	ExpiresAt   time.Time        `json:"expires_at"`
	Permits     []gateway.Permit `json:"permits"`
	Conflict    bool             `json:"conflict"`
}

func (a *API) listSessions(*call) (any, error) {
	permits, _ := a.g.Permits()
	out := []sessionView{}
	for _, s := range a.sessions.List() {
		out = append(out, viewSession(s, permits))
	}
	return map[string]any{"sessions": out}, nil
}

func viewSession(s sessions.Session, permits []gateway.Permit) sessionView {
	v := sessionView{
		SessionID: s.ID, Name: s.Name, State: s.State, UID: s.UID, Listener: s.Listener, Process: gateway.CallerLabel(s),
		OpenedAt: s.Opened.UTC(), ExpiresAt: s.Expires.UTC(), Permits: []gateway.Permit{}, Conflict: s.Conflict,
	}
	if s.State == sessions.StatePending {
		v.PairingCode = s.PairingCode
		v.Permits = append(v.Permits, permits...)
	}
	if s.State == sessions.StateAuthorised {
		for _, p := range permits {
			if _, ok := s.Pins[p.Action]; ok {
				v.Permits = append(v.Permits, p)
			}
		}
	}
	return v
}

func (a *API) sessionNamed(id string, permits []gateway.Permit) (any, error) {
	s, ok := a.sessions.Get(id)
	if !ok {
		return nil, notFound("no such session")
	}
	return viewSession(s, permits), nil
}

func (a *API) revoke(c *call) (any, error) {
	if err := c.only(); err != nil {
		return nil, err
	}
	id := idParam(c)
	if err := a.sessions.Revoke(id, c.by); err != nil {
		return nil, err
	}
	a.g.Note("session.revoke", id, c.by)
	permits, _ := a.g.Permits()
	return a.sessionNamed(id, permits)
}

type callView struct {
	RequestID  string     `json:"request_id"`
	Action     string     `json:"action"`
	Agent      string     `json:"agent"`
	UID        uint32     `json:"uid"`
	State      string     `json:"state"`
	Code       string     `json:"code"`
	Sentence   string     `json:"sentence"`
	ClaimedAt  time.Time  `json:"claimed_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

func viewCall(i gateway.CallInfo) callView {
	v := callView{RequestID: i.RequestID, Action: i.Action, Agent: i.Agent, UID: i.UID, State: i.State.String(), Code: i.Code, Sentence: i.Sentence, ClaimedAt: i.ClaimedAt.UTC()}
	if !i.FinishedAt.IsZero() {
		t := i.FinishedAt.UTC()
		v.FinishedAt = &t
	}
	return v
}

func (a *API) calls(c *call) (any, error) {
	only := false
	switch v := c.r.URL.Query().Get("state"); v {
	case "":
	case "unresolved":
		only = true
	default:
		return nil, invalid("", "state takes only unresolved")
	}
	list, err := a.g.Calls(only)
	if err != nil {
		return nil, err
	}
	out := []callView{}
	for _, i := range list {
		out = append(out, viewCall(i))
	}
	return map[string]any{"calls": out}, nil
}

// call shows one call; within a read session also what was asked and why an
// answer was refused.
func (a *API) call(c *call) (any, error) {
	i, err := a.g.Call(idParam(c))
	if err != nil {
		return nil, err
	}
	v := viewCall(i)
	if !a.mayRead(c) {
		return v, nil
	}
	return struct {
		callView
		Detail map[string]any `json:"detail"`
	}{v, a.g.CallDetail(i)}, nil
}

func (a *API) vaultState(*call) (any, error) { return a.vault.State(), nil }

func (a *API) unlock(c *call) (any, error) {
	open, err := a.wayIn(c)
	if err != nil {
		return nil, err
	}
	if err := open(c.r.Context()); err != nil {
		a.g.Note("unlock refused", "", c.by)
		return nil, err
	}
	return a.vault.State(), nil
}

// wayIn is the one way to open the vault that the body names.
func (a *API) wayIn(c *call) (func(context.Context) error, error) {
	const byPass, byCode, byNobody = "passphrase", "recovery_code", "unattended"
	if err := c.only(byPass, byCode, byNobody); err != nil {
		return nil, err
	}
	m := c.body.without(memberProof).members
	if len(m) > 1 {
		return nil, invalid("", "must hold one of passphrase, recovery_code and unattended")
	}
	if _, there := m[byNobody]; there {
		if yes, err := c.body.flag(byNobody, true); err != nil || !yes {
			return nil, invalid("/"+byNobody, "must be true")
		}
		return a.vault.UnlockUnattended, nil
	}
	if _, there := m[byCode]; there {
		code, err := c.text(byCode, true)
		return func(ctx context.Context) error { return a.vault.UnlockWithCode(ctx, []byte(code)) }, err
	}
	pass, err := c.text(byPass, true)
	return func(ctx context.Context) error { return a.vault.Unlock(ctx, []byte(pass)) }, err
}

func (a *API) lock(c *call) (any, error) {
	if err := c.only(); err != nil {
		return nil, err
	}
	a.vault.Lock("by the operator (" + c.by + ")")
	return a.vault.State(), nil
}

func (a *API) contracts(*call) (any, error) {
	digest, list := a.g.Contracts()
	return map[string]any{"digest": digest, "contracts": list}, nil
}

func (a *API) explain(c *call) (any, error) {
	if err := c.only("action", "input"); err != nil {
		return nil, err
	}
	action, err := c.text("action", true)
	if err != nil {
		return nil, err
	}
	return a.g.Explain(c.r.Context(), action, c.body.members["input"]), nil
}

func (a *API) activity(*call) (any, error) {
	return map[string]any{"activity": a.g.ActivityJournal()}, nil
}

func (a *API) sessionJournal(*call) (any, error) {
	return map[string]any{"sessions": a.g.SessionJournal()}, nil
}

func (a *API) rejections(*call) (any, error) {
	return map[string]any{"rejections": a.g.Rejections()}, nil
}
