package operatorapi

import (
	"context"
	"net/http"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
)

// Identities is what an operator may do with identities: look at everything but
// the secret, and write.
type Identities interface {
	Identities() ([]IdentityView, error)
	// Identity answers for a locked vault too, as far as the site file goes.
	Identity(name string) (IdentityDetail, error)
	Check(name string) (IdentityCheck, error)
	// Bind names the destination that the site file has now for the identity;
	// target is needed where several targets use it. It changes nothing.
	Bind(name, target string) (Bound, error)
	// Rotate names the stored secret and its destination, for a new one in its
	// place. It changes nothing.
	Rotate(name string) (Rotating, error)
	Delete(ctx context.Context, name string) error
}

// Bound is one destination that an identity's secret can be bound to. What a
// proof covered is what is written: nothing is looked up again.
type Bound interface {
	Destination() string
	Digest() [32]byte // over all of the binding: destination, trust and how the secret is applied
	Put(ctx context.Context, secret []byte, o PutOptions) (Stored, error)
	Rebind(ctx context.Context) (Stored, error)
}

// PutOptions is what else is said of a secret. Expires is zero where nobody said;
// Source is NAME:REFERENCE of a secret that is fetched, and there is none then.
type PutOptions struct {
	Short   bool
	Label   string
	Expires time.Time
	Source  string
}

// Rotating is a stored identity that is to get a new secret, bound as it is.
type Rotating interface {
	// Try takes the new secret and stores nothing.
	Try(ctx context.Context, secret []byte, o PutOptions) (Trial, error)
}

// Trial is a new secret beside the stored one. Close drops it.
type Trial interface {
	Lease() gateway.Lease
	Keep(ctx context.Context) (Stored, error)
	Close()
}

// IdentityView is what may be told of an identity at one glance.
type IdentityView struct {
	Name        string     `json:"name"`
	Kind        string     `json:"kind"`
	Label       string     `json:"label,omitempty"`
	State       string     `json:"state"` // one of the words below
	Destination string     `json:"destination"`
	Stored      bool       `json:"stored"`
	Generation  uint64     `json:"generation"`
	Updated     *time.Time `json:"updated,omitempty"` // when the secret was put
	Expires     *time.Time `json:"expires,omitempty"`
	Source      string     `json:"source,omitempty"` // where the secret is fetched
	Targets     []string   `json:"targets"`
	Suspended   bool       `json:"suspended"`
	LastUsed    *time.Time `json:"last_used,omitempty"`
	LastFailure *Failure   `json:"last_failure,omitempty"`
}

// The states of an identity.
const (
	IdentityStored    = "stored"
	IdentityMissing   = "missing"         // no secret in the vault
	IdentitySuspended = "suspended"       // answers repeated its secret
	IdentityExpiring  = "expires soon"    // within vault.warn_before
	IdentityExpired   = "expired"         // its expiry is over; it is still sent
	IdentityElsewhere = "bound elsewhere" // a target of the site file is another destination
	IdentityUnnamed   = "not in targets.yaml"
	IdentityNone      = "none needed"
	IdentityLocked    = "vault locked" // what is stored cannot be seen
)

// Failure is how a use of an identity last failed.
type Failure struct {
	Code       fault.Code `json:"code"`
	At         time.Time  `json:"at"`
	Generation uint64     `json:"generation"` // of the secret that failed
}

// IdentityDetail is everything about an identity but its secret.
type IdentityDetail struct {
	IdentityView
	Binding []BindingPart    `json:"binding"`
	Differs []Difference     `json:"differs"` // from the site file now, target by target
	Actions []IdentityAction `json:"actions"`
	Check   string           `json:"check,omitempty"` // the action that proves it
	// Exchanges says that the secret is exchanged for a token, which proves it too.
	Exchanges bool   `json:"exchanges,omitempty"`
	Why       string `json:"why,omitempty"` // why it is suspended, missing or not to be seen
}

// BindingPart is one part of what the secret is bound to.
type BindingPart struct {
	Part  string `json:"part"`
	Value string `json:"value"`
}

// Difference is one part of the binding that a target has otherwise now.
type Difference struct {
	Target string `json:"target"`
	Part   string `json:"part"`
	Bound  string `json:"bound"`
	Now    string `json:"now"`
}

// IdentityAction is one action that uses the identity.
type IdentityAction struct {
	Action string `json:"action"`
	Effect string `json:"effect"`
	Target string `json:"target"`
}

// IdentityCheck says whether an identity could be used now, target by target.
// Nothing is sent to find out. Action is what would prove it, "" where the site
// file names none.
type IdentityCheck struct {
	Name      string        `json:"name"`
	Stored    bool          `json:"stored"`
	Suspended bool          `json:"suspended"`
	Usable    bool          `json:"usable"`
	Action    string        `json:"action,omitempty"`
	Targets   []TargetCheck `json:"targets"`
}

// TargetCheck is one target that uses the identity.
type TargetCheck struct {
	Target string `json:"target"`
	Bound  bool   `json:"bound"`
	Detail string `json:"detail,omitempty"`
}

// Stored says where a secret was put and for which destination only.
type Stored struct {
	Name        string     `json:"name"`
	Generation  uint64     `json:"generation"`
	Destination string     `json:"destination"`
	Expires     *time.Time `json:"expires,omitempty"`
}

// The operations of this file.
const (
	opPut    = "identity.put"
	opDelete = "identity.delete"
	opRebind = "identity.rebind"
	opRotate = "identity.rotate"
)

// identityRoutes are part of the table in operatorapi.go.
func identityRoutes() []route {
	proved := func(method, path string, w widening) route { return route{method: method, path: path, widens: &w} }
	return []route{
		{http.MethodGet, "/v1/identities", needsSocket, (*API).identities, nil},
		{http.MethodGet, "/v1/identities/{name}", needsSocket, (*API).identity, nil},
		{http.MethodPost, "/v1/identities/{name}/check", needsSocket, (*API).checkIdentity, nil},
		{http.MethodPost, "/v1/identities/{name}/prove", needsReads, (*API).proveIdentity, nil},
		proved(http.MethodPut, "/v1/identities/{name}", widening{operation: opPut, subject: nameParam, aside: []string{memberSecret}, plan: (*API).planPut}),
		proved(http.MethodDelete, "/v1/identities/{name}", widening{operation: opDelete, subject: nameParam, plan: (*API).planDelete}),
		proved(http.MethodPost, "/v1/identities/{name}/rebind", widening{operation: opRebind, subject: nameParam, plan: (*API).planRebind}),
		proved(http.MethodPost, "/v1/identities/{name}/rotate", widening{operation: opRotate, subject: nameParam, aside: []string{memberSecret}, plan: (*API).planRotateIdentity}),
	}
}

func (a *API) identities(*call) (any, error) {
	list, err := a.vault.Identities()
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []IdentityView{}
	}
	return map[string]any{"identities": list}, nil
}

func (a *API) identity(c *call) (any, error) { return a.vault.Identity(nameParam(c)) }

// checkIdentity says whether an identity could be used now. It sends nothing and
// shows no secret, so the socket is enough.
func (a *API) checkIdentity(c *call) (any, error) {
	if err := c.only(); err != nil {
		return nil, err
	}
	return a.vault.Check(nameParam(c))
}

// proveIdentity performs a read with the stored secret and shows its closed
// result. It widens nothing, but it sends with the credential and shows what an
// agent may have to ask for: so it wants the read session of who may see both.
func (a *API) proveIdentity(c *call) (any, error) {
	if err := c.only("action"); err != nil {
		return nil, err
	}
	action, err := c.text("action", false)
	if err != nil {
		return nil, err
	}
	d, err := a.vault.Identity(nameParam(c))
	if err != nil {
		return nil, err
	}
	if action, err = a.provingAction(d, action); err != nil {
		return nil, err
	}
	return a.g.ProveIdentity(c.r.Context(), gateway.Proving{Identity: d.Name, Action: action, By: c.by})
}

// provingAction is the action that was asked for, or the site file's.
func (a *API) provingAction(d IdentityDetail, asked string) (string, error) {
	if asked == "" {
		asked = d.Check
	}
	if asked == "" {
		return "", invalid("/action", "targets.yaml names no action that proves "+d.Name+
			"; write `check: ACTION` under the identity, an action that reads and takes no input, and reload")
	}
	return asked, a.g.CanProve(d.Name, asked)
}
