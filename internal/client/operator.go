package client

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"net"
	"net/url"
	"strconv"
	"time"

	"chatelaine/internal/fault"
)

// unlockTimeout leaves room for the vault's own key derivation on a slow
// machine and for a keychain that takes its time.
const unlockTimeout = 2 * time.Minute

// Operator decides and looks over one connection: requests wait for each other,
// and a read session lasts as long as the connection.
type Operator struct{ w *wire }

// NewOperator makes an operator client; it does not connect yet.
func NewOperator(socket string, owners Owners, userAgent string) *Operator {
	w := newWire("http://localhost", socket, userAgent, oneConnection, func(ctx context.Context) (net.Conn, error) {
		return dialSocket(ctx, socket, owners)
	})
	w.most = maxOperatorReply
	return &Operator{w: w}
}

// Close drops the connection and with it the read session.
func (o *Operator) Close() { o.w.close() }

// Status returns the daemon at one glance.
func (o *Operator) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, o, "GET", "/v1/status", nil)
}

// Challenge asks for something to prove an operation with. of are the parameters
// of the request that the proof will go into; nil where it has none.
func (o *Operator) Challenge(ctx context.Context, operation, subject string, of Params) (Challenge, error) {
	body := struct {
		Operation string `json:"operation"`
		Subject   string `json:"subject"`
		Of        Params `json:"of,omitzero"`
	}{operation, subject, of}
	return ask[Challenge](ctx, o, "POST", "/v1/challenges", body)
}

// ApprovalChallenge asks for something to prove an approval with.
func (o *Operator) ApprovalChallenge(ctx context.Context, id string) (Challenge, error) {
	return ask[Challenge](ctx, o, "POST", "/v1/approvals/"+url.PathEscape(id)+"/challenge", none{})
}

// Approvals lists the cards.
func (o *Operator) Approvals(ctx context.Context) ([]Card, error) {
	out, err := ask[struct {
		Approvals []Card `json:"approvals"`
	}](ctx, o, "GET", "/v1/approvals", nil)
	return out.Approvals, err
}

// Approval returns one card.
func (o *Operator) Approval(ctx context.Context, id string) (Card, error) {
	return ask[Card](ctx, o, "GET", "/v1/approvals/"+url.PathEscape(id), nil)
}

// Approve decides yes; the daemon then sends what the card showed.
func (o *Operator) Approve(ctx context.Context, id string, p Proof) (Card, error) {
	return ask[Card](ctx, o, "POST", "/v1/approvals/"+url.PathEscape(id)+"/approve", withProof{p})
}

// Deny decides no; it needs no proof.
func (o *Operator) Deny(ctx context.Context, id string) (Card, error) {
	return ask[Card](ctx, o, "POST", "/v1/approvals/"+url.PathEscape(id)+"/deny", none{})
}

// Sessions lists the agent runs.
func (o *Operator) Sessions(ctx context.Context) ([]Session, error) {
	out, err := ask[struct {
		Sessions []Session `json:"sessions"`
	}](ctx, o, "GET", "/v1/sessions", nil)
	return out.Sessions, err
}

// Authorize lets a session act.
func (o *Operator) Authorize(ctx context.Context, id string, p Proof) error {
	return o.act(ctx, "POST", "/v1/sessions/"+url.PathEscape(id)+"/authorize", withProof{p})
}

// Revoke ends a session; it needs no proof.
func (o *Operator) Revoke(ctx context.Context, id string) error {
	return o.act(ctx, "POST", "/v1/sessions/"+url.PathEscape(id)+"/revoke", none{})
}

// Calls lists the ledger; state is "" or "unresolved".
func (o *Operator) Calls(ctx context.Context, state string) ([]CallInfo, error) {
	path := "/v1/calls"
	if state != "" {
		path += "?state=" + url.QueryEscape(state)
	}
	out, err := ask[struct {
		Calls []CallInfo `json:"calls"`
	}](ctx, o, "GET", path, nil)
	return out.Calls, err
}

// Call returns one call; its inputs only within a read session.
func (o *Operator) Call(ctx context.Context, requestID string) (CallDetail, error) {
	return ask[CallDetail](ctx, o, "GET", "/v1/calls/"+url.PathEscape(requestID), nil)
}

// Resolve makes an unresolved call final with what a person found out.
func (o *Operator) Resolve(ctx context.Context, requestID string, happened bool, p Proof) error {
	body := struct {
		Happened bool  `json:"happened"`
		Proof    Proof `json:"proof"`
	}{happened, p}
	return o.act(ctx, "POST", "/v1/calls/"+url.PathEscape(requestID)+"/resolve", body)
}

// OpenRead opens this connection's read session.
func (o *Operator) OpenRead(ctx context.Context, p Proof) error {
	return o.act(ctx, "POST", "/v1/reads", withProof{p})
}

// Rejections counts the refused answers of this run, the most frequent first;
// only within a read session.
func (o *Operator) Rejections(ctx context.Context) ([]Rejection, error) {
	out, err := ask[struct {
		Rejections []Rejection `json:"rejections"`
	}](ctx, o, "GET", "/v1/rejections", nil)
	return out.Rejections, err
}

// Unlock opens the vault. The caller wipes the passphrase.
func (o *Operator) Unlock(ctx context.Context, passphrase string) (VaultStatus, error) {
	body := struct {
		Passphrase string `json:"passphrase"`
	}{passphrase}
	return askFor[VaultStatus](ctx, o, unlockTimeout, "POST", "/v1/vault/unlock", body)
}

// Lock closes the vault; it needs no proof.
func (o *Operator) Lock(ctx context.Context) (VaultStatus, error) {
	return ask[VaultStatus](ctx, o, "POST", "/v1/vault/lock", none{})
}

// Contracts lists the loaded set.
func (o *Operator) Contracts(ctx context.Context) (ContractList, error) {
	return ask[ContractList](ctx, o, "GET", "/v1/contracts", nil)
}

// Reload reads contracts and site file again; p is nil until the daemon asks
// for a proof.
func (o *Operator) Reload(ctx context.Context, p *Proof) error {
	body := struct {
		Proof *Proof `json:"proof,omitzero"`
	}{p}
	return o.act(ctx, "POST", "/v1/reload", body)
}

// Explain runs the straight line up to the claim and says what would stop it.
func (o *Operator) Explain(ctx context.Context, action string, input jsontext.Value) (Explanation, error) {
	body := struct {
		Action string         `json:"action"`
		Input  jsontext.Value `json:"input"`
	}{action, input}
	return ask[Explanation](ctx, o, "POST", "/v1/explain", body)
}

type none struct{}

type withProof struct {
	Proof Proof `json:"proof"`
}

func (o *Operator) act(ctx context.Context, method, path string, body any) error {
	_, err := ask[map[string]any](ctx, o, method, path, body)
	return err
}

func ask[T any](ctx context.Context, o *Operator, method, path string, body any) (T, error) {
	return askFor[T](ctx, o, replyTimeout, method, path, body)
}

func askFor[T any](ctx context.Context, o *Operator, limit time.Duration, method, path string, body any) (T, error) {
	var out T
	r, err := o.w.send(ctx, limit, method, path, body)
	if err != nil {
		return out, err
	}
	if r.status/100 != 2 {
		return out, operatorError(r)
	}
	if err := decode(r.body, &out, false); err != nil {
		return out, &ReplyError{r.call, r.status, err}
	}
	return out, nil
}

func operatorError(r reply) error {
	var w struct {
		Error *struct {
			Code       string        `json:"code"`
			Message    string        `json:"message"`
			Detail     string        `json:"detail"`
			RetryAfter float64       `json:"retry_after_seconds"`
			Fields     []fault.Field `json:"fields"`
		} `json:"error"`
	}
	if err := decode(r.body, &w, false); err != nil {
		return &ReplyError{r.call, r.status, err}
	}
	if w.Error == nil || w.Error.Code == "" {
		return &ReplyError{r.call, r.status, errors.New("the status is a refusal and the body is not")}
	}
	after := seconds(w.Error.RetryAfter)
	if after == 0 {
		if s, err := strconv.ParseFloat(r.header.Get("Retry-After"), 64); err == nil {
			after = seconds(s)
		}
	}
	return &Error{Code: fault.Code(w.Error.Code), Message: w.Error.Message, Detail: w.Error.Detail,
		RetryAfter: after, Fields: w.Error.Fields, Status: r.status}
}
