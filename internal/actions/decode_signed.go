package actions

import (
	"slices"
	"strings"
	"time"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

const (
	maxIssuer = 512 // characters of an issuer or an audience
	maxClaims = 16

	// signedSkew is how far a signer's clock may be off where the contract
	// does not say.
	signedSkew = 30 * time.Second
)

// ownClaims have their own key in the check, or are always looked at.
var ownClaims = []string{"iss", "aud", "exp", "nbf", "iat"}

// signedCheck reads the check signed.
func (d *draft) signedCheck(m strictyaml.Member) {
	n := m.Value
	before := d.f.Count()
	if !d.f.Map(n, "signed", "jws", "keys", "issuer", "audience", "claims", "skew") {
		return
	}
	s := &validate.SignedSpec{Claims: map[string]string{}, Skew: signedSkew}
	if p := d.f.Require(n, "signed", "jws"); p != nil {
		s.JWS, _ = d.pointer(p)
	}
	if k := d.f.Require(n, "signed", "keys"); k != nil {
		name, ok := d.f.Text(k, "keys")
		if ok && !targetName.MatchString(name) {
			d.bad(k.Pos, "name", "small letters, digits, - _ and .", "%q is no name of a key set", name)
		}
		s.KeysName = name
		d.signedBy = append(d.signedBy, signedUse{name, k.Pos})
	}
	s.Issuer = d.sentence(d.f.Require(n, "signed", "issuer"), "issuer", maxIssuer)
	s.Audience = d.sentence(d.f.Require(n, "signed", "audience"), "audience", maxIssuer)
	d.signedClaims(n.Get("claims"), s)
	if k := n.Get("skew"); k != nil {
		s.Skew, _ = d.f.Duration(k, "skew", 0, maxSkew)
	}
	d.signedRows(m.KeyPos)
	if d.f.Count() == before {
		d.c.checks = append(d.c.checks, validate.CheckSpec{Kind: "signed", Signed: s})
		d.c.places.signed = append(d.c.places.signed, m.KeyPos)
	}
}

// signedUse is one mention of a key set, looked up once the site file is known.
type signedUse struct {
	name string
	pos  strictyaml.Pos
}

func (d *draft) signedClaims(n *strictyaml.Node, s *validate.SignedSpec) {
	if n == nil || !d.f.Is(n, strictyaml.Mapping, "claims") {
		return
	}
	if len(n.Members) == 0 || len(n.Members) > maxClaims {
		d.bad(n.Pos, "check", "", "claims has 1 to %d members", maxClaims)
	}
	for _, c := range n.Members {
		if slices.Contains(ownClaims, c.Key) {
			d.bad(c.KeyPos, "check", "iss and aud are issuer and audience; exp, nbf and iat are always looked at", "the claim %s does not stand under claims", c.Key)
			continue
		}
		if path, ok := d.checkPath(c.Value, kindAny); ok {
			s.Claims[c.Key] = path
		}
	}
}

// signedRows wants a JSON body of every success, because each of them must
// carry its evidence.
func (d *draft) signedRows(at strictyaml.Pos) {
	for _, s := range d.c.allSteps() {
		for i, r := range s.rows {
			if r.HasSuccess && r.Media != validate.MediaJSON {
				d.bad(at, "check", "give that row a JSON body, or take the check away", "the success in line %d has no JSON body that could carry a signature", s.rowPos[i].Line)
			}
		}
	}
}

// bindKeys gives every signed check its keys, and the contract's digest theirs.
func (d *draft) bindKeys(st *site, doc map[string]any) {
	if st == nil || len(d.signedBy) == 0 {
		return
	}
	digests := map[string]any{}
	for _, u := range d.signedBy {
		k := st.keys[u.name]
		if k == nil {
			d.unknownKeys(st, u)
			continue
		}
		digests[u.name] = k.digest
		for _, c := range d.c.checks {
			if c.Signed != nil && c.Signed.KeysName == u.name {
				c.Signed.Keys = k.set
			}
		}
	}
	doc["keys"] = digests
}

func (d *draft) unknownKeys(st *site, u signedUse) {
	root := st.f.Root()
	if root == nil || u.name == "" {
		return // told already
	}
	var names []string
	if n := root.Get("keys"); n != nil {
		names = n.Keys()
	}
	if slices.Contains(names, u.name) {
		return // it is there and was refused
	}
	hint := strictyaml.DidYouMean(u.name, names)
	if !strings.HasPrefix(hint, "did you mean") {
		hint = "the operator writes it there under keys: NAME: {jwks: FILE}"
	}
	d.bad(u.pos, "keys-unknown", hint, "the site file has no keys %q", u.name)
}

// bindsSigned says whether the evidence is bound to this call: a claim is
// compared with an input, a result that is bound itself, or the call.
func bindsSigned(s *validate.SignedSpec) bool {
	for _, path := range s.Claims {
		if root, _, _ := strings.Cut(path, "."); root == "input" || root == "result" || root == "call" {
			return true
		}
	}
	return false
}
