package operatorapi

import (
	"fmt"
	"strings"
	"time"

	"chatelaine/internal/approvals"
	"chatelaine/internal/fault"
	"chatelaine/internal/gateway"
)

// putOptions reads what may be said of a secret beside it. given holds what was
// said, for the challenge, and said the same in words.
func putOptions(of object) (o PutOptions, given map[string]any, said string, err error) {
	given = map[string]any{}
	if o.Short, err = of.flag("short", false); err != nil {
		return o, nil, "", err
	}
	if o.Label, err = of.text("label", false); err != nil {
		return o, nil, "", err
	}
	if o.Source, err = of.text("source", false); err != nil {
		return o, nil, "", err
	}
	when, err := of.text("expires", false)
	if err != nil {
		return o, nil, "", err
	}
	if when != "" {
		if o.Expires, err = time.Parse(time.RFC3339, when); err != nil {
			return o, nil, "", invalid(of.at+"/expires", "must be a time such as 2026-12-31T00:00:00Z (RFC 3339)")
		}
		if !o.Expires.After(time.Now()) {
			return o, nil, "", invalid(of.at+"/expires", "is over already; a secret that works no more is not stored")
		}
		given["expires"] = when
		said += ", which expires at " + o.Expires.UTC().Format(time.RFC3339)
	}
	for name, text := range map[string]string{"label": o.Label, "source": o.Source} {
		if text != "" {
			given[name] = text
		}
	}
	if o.Label != "" {
		said += fmt.Sprintf(", labelled %q", o.Label)
	}
	if o.Source != "" {
		said += fmt.Sprintf(", fetched from %q", o.Source)
	}
	if o.Short {
		given["short"] = true
		said += "; a short one is taken"
	}
	return o, given, said, nil
}

// newSecret is the secret of a put or a rotation; one that is fetched has none
// here. The caller clears it.
func (c *call) newSecret(o PutOptions) ([]byte, error) {
	if o.Source == "" {
		return c.secret()
	}
	if _, there := c.body.members[memberSecret]; there {
		return nil, invalid("/"+memberSecret, "a secret that is fetched from a source is not given as well")
	}
	return nil, nil
}

// checkSource refuses a source that is not there before a person proves anything.
func (a *API) checkSource(o PutOptions) error {
	if o.Source == "" {
		return nil
	}
	return a.vault.CheckSource(o.Source)
}

// planPut takes a secret in; it never comes out again.
func (a *API) planPut(name string, of object) (statement, error) {
	if err := of.only("target", "short", "label", "expires", "source"); err != nil {
		return statement{}, err
	}
	o, given, said, err := putOptions(of)
	if err != nil {
		return statement{}, err
	}
	if err := a.checkSource(o); err != nil {
		return statement{}, err
	}
	s, bound, err := a.planBinding(name, of)
	if err != nil {
		return statement{}, err
	}
	for k, v := range given {
		s.of[k] = v
	}
	s.covers = fmt.Sprintf("store a secret for %s, bound to %s%s", name, bound.Destination(), said)
	s.do = func(c *call) (any, error) {
		b, err := c.newSecret(o)
		if err != nil {
			return nil, err
		}
		defer clear(b)
		if err := a.g.Record(c.r.Context(), opPut, name, c.by, o.detail(bound.Destination())); err != nil {
			return nil, err
		}
		return bound.Put(c.r.Context(), b, o)
	}
	return s, nil
}

// detail is what the record has of a secret that is stored.
func (o PutOptions) detail(destination string) map[string]any {
	d := map[string]any{"destination": destination, "short": o.Short}
	if o.Label != "" {
		d["label"] = o.Label
	}
	if o.Source != "" {
		d["source"] = o.Source
	}
	if !o.Expires.IsZero() {
		d["expires"] = o.Expires.UTC().Format(time.RFC3339)
	}
	return d
}

// planBinding is what put and rebind have in common: the target that was asked
// for and the binding that it has now.
func (a *API) planBinding(name string, of object) (statement, Bound, error) {
	target, err := of.text("target", false)
	if err != nil {
		return statement{}, nil, err
	}
	bound, err := a.vault.Bind(name, target)
	if err != nil {
		return statement{}, nil, err
	}
	s := statement{of: map[string]any{}, facts: []approvals.Part{{Name: "the destination of " + name, Digest: bound.Digest()}}}
	if target != "" {
		s.of["target"] = target
	}
	return s, bound, nil
}

func (a *API) planRebind(name string, of object) (statement, error) {
	if err := of.only("target"); err != nil {
		return statement{}, err
	}
	s, bound, err := a.planBinding(name, of)
	if err != nil {
		return statement{}, err
	}
	was, err := a.stored(name)
	if err != nil {
		return statement{}, err
	}
	target, _ := s.of["target"].(string)
	s.facts = append(s.facts, storedFact(was.IdentityView))
	s.covers = fmt.Sprintf("bind the stored secret of %s to %s; now it is bound to %s%s", name, bound.Destination(), was.Destination, changesText(was.Differs, target))
	s.do = func(c *call) (any, error) {
		detail := map[string]any{"destination": bound.Destination(), "was": was.Destination}
		if err := a.g.Record(c.r.Context(), opRebind, name, c.by, detail); err != nil {
			return nil, err
		}
		return bound.Rebind(c.r.Context())
	}
	return s, nil
}

// changesText names each part that a rebind changes; target is "" where there is
// one.
func changesText(all []Difference, target string) string {
	var out []string
	for _, d := range all {
		if target == "" || d.Target == target {
			out = append(out, fmt.Sprintf("%s from %s to %s", d.Part, orNone(d.Bound), orNone(d.Now)))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "; it changes " + strings.Join(out, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (a *API) planDelete(name string, of object) (statement, error) {
	if err := of.only(); err != nil {
		return statement{}, err
	}
	was, err := a.stored(name)
	if err != nil {
		return statement{}, err
	}
	return statement{
		covers: fmt.Sprintf("delete the secret of %s, which is bound to %s; %s", name, was.Destination, stopsText(was.Actions)),
		facts:  []approvals.Part{storedFact(was.IdentityView)},
		do: func(c *call) (any, error) {
			if err := a.g.Record(c.r.Context(), opDelete, name, c.by, map[string]any{"destination": was.Destination}); err != nil {
				return nil, err
			}
			if err := a.vault.Delete(c.r.Context(), name); err != nil {
				return nil, err
			}
			return map[string]any{"name": name, "deleted": true}, nil
		},
	}, nil
}

// stopsText names what works no more without the secret.
func stopsText(all []IdentityAction) string {
	var names []string
	for _, x := range all {
		names = append(names, x.Action+" on "+x.Target)
	}
	if len(names) == 0 {
		return "no action uses it"
	}
	return "these work no more: " + some(names)
}

// stored is the identity of that name, if the vault has a secret for it.
func (a *API) stored(name string) (IdentityDetail, error) {
	d, err := a.vault.Identity(name)
	if err != nil {
		return IdentityDetail{}, err
	}
	if d.State == IdentityLocked {
		return IdentityDetail{}, fault.New(fault.VaultLocked, nil)
	}
	if !d.Stored {
		return IdentityDetail{}, fault.Newf(fault.NotFound, "no secret is stored under that name")
	}
	return d, nil
}

func storedFact(v IdentityView) approvals.Part {
	return factOf("the stored secret of "+v.Name, map[string]any{"generation": v.Generation, "destination": v.Destination})
}

// Rotated says how a rotation ended. Where the new secret was not proved nothing
// changed.
type Rotated struct {
	Rotated bool                    `json:"rotated"`
	Stored  *Stored                 `json:"stored,omitempty"`
	Proof   *gateway.ProvedIdentity `json:"proof,omitempty"` // none for an unproved one
}

// opRotateFailed closes an identity.rotate whose secret was not proved or kept.
const opRotateFailed = "identity.rotate-refused"

// planRotateIdentity proves a new secret and only then puts it in the place of
// the stored one.
func (a *API) planRotateIdentity(name string, of object) (statement, error) {
	if err := of.only("short", "label", "expires", "action", "unproved"); err != nil {
		return statement{}, err
	}
	o, given, said, err := putOptions(of)
	if err != nil {
		return statement{}, err
	}
	if err := a.checkSource(o); err != nil {
		return statement{}, err
	}
	unproved, err := of.flag("unproved", false)
	if err != nil {
		return statement{}, err
	}
	action, err := of.text("action", false)
	if err != nil {
		return statement{}, err
	}
	if unproved && action != "" {
		return statement{}, invalid(of.at+"/action", "an unproved rotation takes no action")
	}
	was, err := a.stored(name)
	if err != nil {
		return statement{}, err
	}
	rotating, err := a.vault.Rotate(name)
	if err != nil {
		return statement{}, err
	}
	s := statement{of: given, facts: []approvals.Part{storedFact(was.IdentityView)}}
	if action != "" {
		s.of["action"] = action
	}
	how := "without proof that it works"
	switch {
	case unproved:
		s.of["unproved"] = true
	case action == "" && was.Check == "" && was.Exchanges:
		how = "once it was exchanged for a token"
	default:
		if action, err = a.provingAction(was, action); err != nil {
			return statement{}, err
		}
		how = "once " + action + " has shown that it works"
	}
	s.covers = fmt.Sprintf("put a new secret for %s in the place of generation %d, bound as that is to %s%s; %s; what waits for an approval asks again",
		name, was.Generation, was.Destination, said+leavesText(was.Source), how)
	s.do = func(c *call) (any, error) {
		return a.rotate(c, rotation{name: name, action: action, by: c.by, unproved: unproved, o: o, was: was}, rotating)
	}
	return s, nil
}

// leavesText says that a new secret lies in the vault where the old one was fetched.
func leavesText(source string) string {
	if source == "" {
		return ""
	}
	return fmt.Sprintf("; from then on it is in the vault, and no longer fetched from %q", source)
}

// rotation is one that was proved by the operator.
type rotation struct {
	name, action, by string
	unproved         bool
	o                PutOptions
	was              IdentityDetail
}

func (a *API) rotate(c *call, r rotation, rotating Rotating) (any, error) {
	ctx := c.r.Context()
	b, err := c.newSecret(r.o)
	if err != nil {
		return nil, err
	}
	defer clear(b)
	t, err := rotating.Try(ctx, b, r.o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	detail := r.o.detail(r.was.Destination)
	detail["generation"], detail["action"], detail["unproved"] = r.was.Generation, r.action, r.unproved
	if err := a.g.Record(ctx, opRotate, r.name, r.by, detail); err != nil {
		return nil, err
	}
	out := Rotated{}
	if !r.unproved {
		prove := a.g.ProveIdentity
		if r.action == "" {
			prove = a.g.ProveExchange
		}
		p, err := prove(ctx, gateway.Proving{Identity: r.name, Action: r.action, By: r.by, Trial: t.Lease()})
		if err != nil {
			a.g.Note(opRotateFailed, r.name, r.by)
			return nil, err
		}
		if out.Proof = &p; !p.OK {
			a.g.Note(opRotateFailed, r.name, r.by)
			return out, nil
		}
	}
	stored, err := t.Keep(ctx)
	if err != nil {
		a.g.Note(opRotateFailed, r.name, r.by)
		return nil, err
	}
	out.Rotated, out.Stored = true, &stored
	return out, nil
}
