package actions

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"chatelaine/internal/actions/strictyaml"
)

// kindReader is what one kind of identity has beside kind, ask and check.
type kindReader struct {
	keys []string
	read func(s *site, n *strictyaml.Node, id *IdentitySpec)
}

// identityKinds are the kinds in the order in which they are explained.
var identityKinds = []string{
	KindBearer, KindHeader, KindBasic, KindBody, KindClientCertificate, KindOAuth2Client, KindOAuth2Refresh,
	KindGitHubApp, KindJWTBearer, KindRegistryToken, KindSSHKey, KindSSHCertificate, KindNone,
}

var kindReaders = map[string]kindReader{
	KindBearer:            {nil, (*site).bearerIdentity},
	KindHeader:            {[]string{"name", "prefix"}, (*site).headerIdentity},
	KindBasic:             {[]string{"username"}, (*site).basicIdentity},
	KindBody:              {[]string{"json", "form"}, (*site).bodyIdentity},
	KindClientCertificate: {nil, nil},
	KindOAuth2Client:      {[]string{"token", "client_id", "scopes", "auth", "audience", "resource"}, (*site).oauthClient},
	KindOAuth2Refresh:     {[]string{"token", "client_id", "scopes", "auth"}, (*site).oauthRefresh},
	KindGitHubApp:         {[]string{"token", "app_id", "installation", "repositories", "permissions"}, (*site).githubApp},
	KindJWTBearer:         {[]string{"token", "issuer", "subject", "audience", "scopes", "algorithm", "key_id"}, (*site).jwtBearer},
	KindRegistryToken:     {[]string{"token", "username", "service", "scopes"}, (*site).registryToken},
	KindSSHKey:            {nil, nil},
	KindSSHCertificate:    {[]string{"principals", "valid", "force_command", "sign"}, (*site).sshCertificate},
	KindNone:              {nil, nil},
}

func (s *site) readIdentities(n *strictyaml.Node) {
	if n == nil || !s.f.Is(n, strictyaml.Mapping, "identities") {
		return
	}
	for _, m := range n.Members {
		if !targetName.MatchString(m.Key) {
			s.bad(m.KeyPos, "name", "small letters, digits, - _ and .", "%q is no name of an identity", m.Key)
		}
		if id := s.identity(m); id != nil {
			s.identities[m.Key] = id
		}
	}
}

func (s *site) identity(m strictyaml.Member) *IdentitySpec {
	n := m.Value
	if !s.f.Is(n, strictyaml.Mapping, "an identity") {
		return nil
	}
	word, ok := s.f.Word(s.f.Require(n, "an identity", "kind"), "kind", identityKinds...)
	if !ok {
		return nil
	}
	kind := kindReaders[word]
	s.f.Map(n, "an identity of kind "+word, append([]string{"kind", "ask", "check"}, kind.keys...)...)
	id := &IdentitySpec{name: m.Key, kind: word, ask: s.ask(n.Get("ask")), params: map[string]string{}}
	if c := n.Get("check"); c != nil {
		id.check, id.checkPos = s.checkName(c), c.Pos
	}
	if kind.read != nil {
		kind.read(s, n, id)
	}
	for _, name := range sortedKeys(id.params) {
		if len(id.params[name]) > maxParam {
			s.bad(n.Get(name).Pos, "identity", "name fewer, or make a second identity", "%s has more than %d bytes together", name, maxParam)
		}
	}
	if id.Exchanges() {
		id.headerName, id.prefix = "Authorization", "Bearer "
	}
	return id
}

// checkName reads the name of the action that proves an identity. What the
// action must be is looked at when the contracts are there.
func (s *site) checkName(n *strictyaml.Node) string {
	name, ok := s.f.Text(n, "check")
	if ok && !actionName.MatchString(name) {
		s.bad(n.Pos, "action", "", "%q is no name of an action", name)
		return ""
	}
	return name
}

func (s *site) bearerIdentity(_ *strictyaml.Node, id *IdentitySpec) {
	id.headerName, id.prefix = "Authorization", "Bearer "
}

func (s *site) basicIdentity(n *strictyaml.Node, id *IdentitySpec) {
	id.headerName = "Authorization"
	id.username = s.username(n, id)
}

func (s *site) username(n *strictyaml.Node, id *IdentitySpec) string {
	u := s.f.Require(n, "an identity of kind "+id.kind, "username")
	name, ok := s.f.Text(u, "username")
	if ok && (name == "" || strings.Contains(name, ":") || !oneLine(name)) {
		s.bad(u.Pos, "identity", "", "a user name is not empty and has no colon and no control character")
	}
	return name
}

func (s *site) headerIdentity(n *strictyaml.Node, id *IdentitySpec) {
	h := s.f.Require(n, "an identity of kind header", "name")
	if name, ok := s.f.Text(h, "name"); ok {
		id.headerName = http.CanonicalHeaderKey(name)
		if !httpguts.ValidHeaderFieldName(name) || id.headerName != "Authorization" && (refusedHeader(name) || slices.Contains(headerAllowList, id.headerName)) {
			s.bad(h.Pos, "identity", "such as X-Api-Key", "the header %q cannot carry a credential", name)
		}
	}
	if p := n.Get("prefix"); p != nil {
		text, ok := s.f.Text(p, "prefix")
		if ok && text != "" && !validHeaderText(strings.TrimSuffix(text, " ")) {
			s.bad(p.Pos, "identity", "", "the prefix holds a character that headers cannot have")
		}
		id.prefix = text
	}
}

// bodyIdentity reads where in a body the secret goes: at a member of a JSON
// object, or in one field of a form.
func (s *site) bodyIdentity(n *strictyaml.Node, id *IdentitySpec) {
	j, f := n.Get("json"), n.Get("form")
	if slices.Contains(n.Broken(), "json") || slices.Contains(n.Broken(), "form") {
		return
	}
	if (j == nil) == (f == nil) {
		s.bad(n.Pos, "identity", "write json: /routing_key, or form: token", "an identity of kind body has one of json and form")
		return
	}
	if f != nil {
		if name, ok := s.f.Text(f, "form"); ok {
			if !formField.MatchString(name) || overridingMember(name) {
				s.bad(f.Pos, "identity", "such as token", "%q cannot be the field of a form that carries a credential", name)
			}
			id.hole, id.params["form"] = &holeSpec{form: name}, name
		}
		return
	}
	if text, ok := s.f.Text(j, "json"); ok {
		tokens, ok := memberTokens(text)
		if !ok {
			s.bad(j.Pos, "identity", "such as /routing_key", "%q names no member of a body: it is a JSON pointer to one", text)
		}
		id.hole, id.params["json"] = &holeSpec{json: tokens}, text
	}
}

// fits holds an identity to the target that uses it.
func (s *site) fits(at *strictyaml.Node, id *IdentitySpec, t *Target) {
	ssh := id.kind == KindSSHKey || id.kind == KindSSHCertificate
	switch {
	case ssh && t.ssh == nil:
		s.bad(at.Pos, "identity-target", "an HTTPS target takes every kind but ssh_key and ssh_certificate", "the identity %q is of kind %s, which only a target over SSH takes", id.name, id.kind)
	case !ssh && t.ssh != nil:
		s.bad(at.Pos, "identity-target", "a target over SSH takes ssh_key and ssh_certificate", "the identity %q is of kind %s, which a target over SSH cannot use", id.name, id.kind)
	case id.kind == KindClientCertificate && t.scheme == "http":
		s.bad(at.Pos, "identity-target", "give the target an https URL", "a client certificate is shown in a TLS handshake, and the target %q speaks plain http", t.name)
	}
}
