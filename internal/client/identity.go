package client

import (
	"context"
	"encoding/json/jsontext"
	"net/url"
	"time"

	"chatelaine/internal/fault"
)

// Operations on identities that need a proof, as the daemon names them.
const (
	OpIdentityPut    = "identity.put"
	OpIdentityDelete = "identity.delete"
	OpIdentityRebind = "identity.rebind"
	OpIdentityRotate = "identity.rotate"
)

// provingTimeout is above what the daemon itself gives a read that proves an
// identity.
const provingTimeout = 3 * time.Minute

// Identity is one identity of the site file and what the vault has for it.
type Identity struct {
	Name        string           `json:"name"`
	Kind        string           `json:"kind"`
	Label       string           `json:"label,omitzero"`
	State       string           `json:"state"`
	Destination string           `json:"destination"`
	Stored      bool             `json:"stored"`
	Generation  uint64           `json:"generation"`
	Updated     time.Time        `json:"updated,omitzero"`
	Expires     time.Time        `json:"expires,omitzero"`
	Source      string           `json:"source,omitzero"`
	Targets     []string         `json:"targets"`
	Suspended   bool             `json:"suspended"`
	LastUsed    time.Time        `json:"last_used,omitzero"`
	LastFailure *IdentityFailure `json:"last_failure,omitempty"`
}

// IdentityFailure is how a use of an identity last failed.
type IdentityFailure struct {
	Code       fault.Code `json:"code"`
	At         time.Time  `json:"at"`
	Generation uint64     `json:"generation"`
}

// IdentityDetail is everything about an identity but its secret.
type IdentityDetail struct {
	Identity `json:",embed"`
	Binding  []struct {
		Part  string `json:"part"`
		Value string `json:"value"`
	} `json:"binding"`
	Differs []IdentityDifference `json:"differs"`
	Actions []struct {
		Action string `json:"action"`
		Effect string `json:"effect"`
		Target string `json:"target"`
	} `json:"actions"`
	Check string `json:"check,omitzero"` // the action that proves it
	// Exchanges says that the secret is exchanged for a token, which proves it too.
	Exchanges bool   `json:"exchanges,omitzero"`
	Why       string `json:"why,omitzero"`
}

// IdentityDifference is one part of the binding that a target has otherwise now.
type IdentityDifference struct {
	Target string `json:"target"`
	Part   string `json:"part"`
	Bound  string `json:"bound"`
	Now    string `json:"now"`
}

// PutIdentity carries a secret to the vault, and what is said of it. The caller
// wipes Secret. Expires is zero where nobody said.
type PutIdentity struct {
	Secret  []byte
	Target  string // not for a rotation
	Short   bool
	Label   string
	Expires time.Time
	Source  string // NAME:REFERENCE of a secret that is fetched, without Secret; not for a rotation
	// Action and Unproved are for a rotation: what proves the new secret, "" for
	// the site file's word, or that nothing does.
	Action   string
	Unproved bool
	Proof    Proof
}

// Params are those of identity.put and identity.rotate.
func (n PutIdentity) Params() Params {
	p := Params{}
	for name, text := range map[string]string{"target": n.Target, "label": n.Label, "source": n.Source, "action": n.Action} {
		if text != "" {
			p[name] = text
		}
	}
	if n.Short {
		p["short"] = true
	}
	if n.Unproved {
		p["unproved"] = true
	}
	if !n.Expires.IsZero() {
		p["expires"] = n.Expires.UTC().Format(time.RFC3339)
	}
	return p
}

// TargetParams are those of identity.rebind; "" where one target uses it.
func TargetParams(target string) Params { return PutIdentity{Target: target}.Params() }

// IdentityCheck says whether an identity could be used now, target by target.
type IdentityCheck struct {
	Name      string `json:"name"`
	Stored    bool   `json:"stored"`
	Suspended bool   `json:"suspended"`
	Usable    bool   `json:"usable"`
	Action    string `json:"action,omitzero"` // what would prove it
	Targets   []struct {
		Target string `json:"target"`
		Bound  bool   `json:"bound"`
		Detail string `json:"detail,omitzero"`
	} `json:"targets"`
}

// IdentityProof is how a read that proves an identity ended. Data is the
// contract's closed result, Display untrusted text of the remote system.
type IdentityProof struct {
	RequestID string                 `json:"request_id"`
	Action    string                 `json:"action"`
	Target    string                 `json:"target"`
	OK        bool                   `json:"ok"`
	Code      fault.Code             `json:"code,omitzero"`
	Message   string                 `json:"message,omitzero"`
	Cause     string                 `json:"cause,omitzero"`
	Data      jsontext.Value         `json:"data,omitzero"`
	Display   map[string]DisplayText `json:"display,omitempty"`
}

// StoredIdentity says where a secret is bound now.
type StoredIdentity struct {
	Name        string    `json:"name"`
	Generation  uint64    `json:"generation"`
	Destination string    `json:"destination"`
	Expires     time.Time `json:"expires,omitzero"`
}

// RotatedIdentity is how a rotation ended; where Rotated is false nothing changed.
type RotatedIdentity struct {
	Rotated bool            `json:"rotated"`
	Stored  *StoredIdentity `json:"stored,omitempty"`
	Proof   *IdentityProof  `json:"proof,omitempty"`
}

func identityPath(name, more string) string { return "/v1/identities/" + url.PathEscape(name) + more }

// Identities lists the identities; secrets are never read.
func (o *Operator) Identities(ctx context.Context) ([]Identity, error) {
	out, err := ask[struct {
		Identities []Identity `json:"identities"`
	}](ctx, o, "GET", "/v1/identities", nil)
	return out.Identities, err
}

// Identity returns one identity, part by part.
func (o *Operator) Identity(ctx context.Context, name string) (IdentityDetail, error) {
	return ask[IdentityDetail](ctx, o, "GET", identityPath(name, ""), nil)
}

// PutIdentity stores a secret, bound to its destination.
func (o *Operator) PutIdentity(ctx context.Context, name string, n PutIdentity) (StoredIdentity, error) {
	return askFor[StoredIdentity](ctx, o, unlockTimeout, "PUT", identityPath(name, ""), secretBody(n.Params(), n.Secret, n.Proof))
}

// RotateIdentity proves a new secret and then puts it in the place of the stored
// one.
func (o *Operator) RotateIdentity(ctx context.Context, name string, n PutIdentity) (RotatedIdentity, error) {
	return askFor[RotatedIdentity](ctx, o, provingTimeout, "POST", identityPath(name, "/rotate"), secretBody(n.Params(), n.Secret, n.Proof))
}

// DeleteIdentity removes a secret.
func (o *Operator) DeleteIdentity(ctx context.Context, name string, p Proof) error {
	return o.act(ctx, "DELETE", identityPath(name, ""), withProof{p})
}

// CheckIdentity asks whether an identity could be used now; nothing is sent.
func (o *Operator) CheckIdentity(ctx context.Context, name string) (IdentityCheck, error) {
	return ask[IdentityCheck](ctx, o, "POST", identityPath(name, "/check"), struct{}{})
}

// ProveIdentity performs a read with the stored secret; only within a read
// session. action is "" for the one that the site file names.
func (o *Operator) ProveIdentity(ctx context.Context, name, action string) (IdentityProof, error) {
	return askFor[IdentityProof](ctx, o, provingTimeout, "POST", identityPath(name, "/prove"), PutIdentity{Action: action}.Params())
}

// RebindIdentity binds a stored secret to the destination that the site file
// names now; target is needed where several targets use it.
func (o *Operator) RebindIdentity(ctx context.Context, name, target string, p Proof) (StoredIdentity, error) {
	return ask[StoredIdentity](ctx, o, "POST", identityPath(name, "/rebind"), secretBody(TargetParams(target), nil, p))
}
