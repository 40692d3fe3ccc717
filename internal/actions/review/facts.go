package review

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/fault"
)

func digestText(c *actions.Contract) string {
	d := c.Digest()
	return "sha256:" + hex.EncodeToString(d[:])
}

// Destination is one target that the route names.
type Destination struct {
	Target   string `json:"target"`
	Address  string `json:"address,omitzero"` // scheme, host and port
	BasePath string `json:"base_path,omitzero"`
	Identity string `json:"identity,omitzero"`
	Kind     string `json:"identity_kind,omitzero"`
	// Exchange is where the identity's secret goes instead, for a token or a
	// signature; "" where it goes to the target or stays.
	Exchange string `json:"identity_exchange,omitzero"`
	// Grants are the identity's own constants: what a token is asked for and as whom.
	Grants []Member `json:"identity_constants,omitzero"`
	// ReadOnly says that a token is asked for with reading only, whatever the
	// constants name.
	ReadOnly bool     `json:"identity_read_only,omitzero"`
	Effects  []string `json:"effects,omitzero"` // the most it takes
	// Ask is how this action ends up being asked about there: never, session or
	// every_call.
	Ask string `json:"ask,omitzero"`
	// Closed says why nothing gets there, "" where it does.
	Closed string   `json:"closed,omitzero"`
	Places []string `json:"places,omitzero"` // loopback, private: where it may lie besides the open network
	Cases  []Case   `json:"cases"`
}

// Case is one way to a target: what the selecting inputs say, and the constants
// that stand for it.
type Case struct {
	When []Member `json:"when"`
	With []Member `json:"with"`
}

// destinations are the targets in the order in which the route names them.
func destinations(c *actions.Contract, set *actions.Set) []Destination {
	var out []Destination
	for _, k := range c.RouteCases() {
		i := slices.IndexFunc(out, func(d Destination) bool { return d.Target == k.Target })
		if i < 0 {
			i = len(out)
			out = append(out, destination(c, set, k.Target))
		}
		one := Case{When: []Member{}, With: []Member{}}
		for j, name := range c.RouteBy() {
			if j < len(k.Values) {
				one.When = append(one.When, Member{name, Value{Text: plain(k.Values[j])}})
			}
		}
		for _, name := range sorted(k.With) {
			one.With = append(one.With, Member{name, Value{Text: plain(k.With[name])}})
		}
		out[i].Cases = append(out[i].Cases, one)
	}
	return out
}

// plain writes a constant without quotes where it is one word.
func plain(v any) string {
	if s, ok := v.(string); ok && plainWord.MatchString(s) {
		return s
	}
	return constant(v)
}

func sorted[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func destination(c *actions.Contract, set *actions.Set, name string) Destination {
	d := Destination{Target: name}
	if set == nil {
		return d
	}
	t, ok := set.Target(name)
	if !ok {
		d.Closed = "the site file has no such target"
		return d
	}
	d.Address, d.BasePath, d.Identity = t.Scheme()+"://"+hostPort(t), t.BasePath(), t.Identity()
	if id, ok := set.Identity(d.Identity); ok {
		d.identity(c, id)
	}
	for _, e := range t.Effects() {
		d.Effects = append(d.Effects, e.String())
	}
	for word, allowed := range map[string]bool{"loopback": t.AllowLoopback(), "private": t.AllowPrivate()} {
		if allowed {
			d.Places = append(d.Places, word)
		}
	}
	slices.Sort(d.Places)
	switch {
	case !t.AllowsAction(c.Action()):
		d.Closed = "it does not list this action"
	case !t.AllowsEffect(c.Effect()):
		d.Closed = "it does not take this effect"
	default:
		d.Ask = c.AskAt(t).String()
	}
	return d
}

// identity fills in how the identity shows itself.
func (d *Destination) identity(c *actions.Contract, id *actions.IdentitySpec) {
	d.Kind = id.Kind()
	if p := id.Token(); p != nil {
		d.Exchange = p.Scheme() + "://" + hostPort(p) + p.Path()
	}
	params := id.Params()
	for _, name := range sorted(params) {
		d.Grants = append(d.Grants, Member{name, Value{Text: params[name]}})
	}
	d.ReadOnly = id.Narrow(c, actions.Route{}).ReadOnly
}

// origin is what a target and the place of an exchange have in common.
type origin interface {
	Scheme() string
	Host() string
	Port() int
}

func hostPort(o origin) string {
	host := o.Host()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if usual := map[string]int{"https": 443, "http": 80}[o.Scheme()]; usual == o.Port() {
		return host
	}
	return fmt.Sprintf("%s:%d", host, o.Port())
}

// codes are the contract's own, and those of the API that its rows name.
func codes(c *actions.Contract, root *strictyaml.Node) []Code {
	var out []Code
	for _, o := range c.OwnCodes() {
		e := fault.Own(fault.Code(o.Code), o.Message, o.Retryable, nil)
		out = append(out, Code{o.Code, true, e.Status(), o.Retryable, o.Message})
	}
	named := map[string]bool{}
	for _, s := range stepsOf(root) {
		for _, row := range nonNil(s.Node.Get("outcomes")).Items {
			for _, code := range failureCodes(row) {
				named[code] = true
			}
		}
	}
	for _, code := range sorted(named) {
		if _, own := c.OwnCode(code); own || !fault.Known(fault.Code(code)) {
			continue
		}
		e := fault.New(fault.Code(code), nil)
		out = append(out, Code{code, false, e.Status(), e.Retryable(), e.Message()})
	}
	return out
}

// failureCodes are the codes that a row may give.
func failureCodes(row *strictyaml.Node) []string {
	f := row.Get("failure")
	if f == nil {
		return nil
	}
	if f.Kind == strictyaml.String {
		return []string{f.Text}
	}
	var out []string
	for _, m := range members(f.Get("map")) {
		if !slices.Contains(out, m.Value.Text) {
			out = append(out, m.Value.Text)
		}
	}
	if o := f.Get("other"); o != nil && !slices.Contains(out, o.Text) {
		out = append(out, o.Text)
	}
	return out
}

func approval(c *actions.Contract, root *strictyaml.Node) Approval {
	a := Approval{Show: []Member{}, Ask: c.Ask().String()}
	n := root.Get("approval")
	if n == nil {
		return a
	}
	a.Sentence = c.SentenceForm()
	for _, m := range members(n.Get("show")) {
		a.Show = append(a.Show, Member{m.Key, valueOf(m.Value)})
	}
	return a
}

// once says how a request is done once.
func once(root *strictyaml.Node) []string {
	var out []string
	if i := root.Get("idempotency"); i != nil {
		switch {
		case i.Get("header") != nil:
			out = append(out, "idempotency: the daemon's key in the header "+i.Get("header").Text)
		case i.Get("json") != nil:
			out = append(out, "idempotency: the daemon's key in the body at "+i.Get("json").Text)
		default:
			out = append(out, "idempotency: a repeat has the same effect and the same answer"+because(i.Get("because")))
		}
	}
	if root.Get("reconcile") != nil {
		out = append(out, "reconcile: a lost or invalid answer is looked up again")
	}
	if p := root.Get("poll"); p != nil {
		out = append(out, "poll: every "+nonNil(p.Get("every")).Text+" within "+nonNil(p.Get("within")).Text)
	}
	if n := root.Get("confirm"); n != nil {
		out = append(out, "confirm: a plan is shown first, and confirmed")
	}
	if n := root.Get("at_most_once"); n != nil {
		out = append(out, "sent at most once: "+n.Text)
	}
	return out
}

func because(n *strictyaml.Node) string {
	if n == nil {
		return ""
	}
	return ": " + n.Text
}

func retry(root *strictyaml.Node) *Retry {
	n := root.Get("retry")
	if n == nil {
		return nil
	}
	r := &Retry{Within: nonNil(n.Get("within")).Text, Codes: orEmpty(texts(n.Get("codes")))}
	fmt.Sscan(nonNil(n.Get("attempts")).Text, &r.Attempts)
	if l := n.Get("rate_limit"); l != nil {
		r.RateLimit = nonNil(l.Get("header")).Text + " in " + nonNil(l.Get("unit")).Text
	}
	return r
}
