package actions

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

const (
	maxWord       = 512 // of one constant of an identity; issuers and audiences are URLs
	maxScopes     = 64
	maxPrincipals = 16
	// maxParam is the most that the vault keeps of one constant with a secret.
	maxParam = 4096
	// maxRepositories is what GitHub takes in one request for a token.
	maxRepositories = 500
	maxPermissions  = 100
	// A certificate lives for one call; an hour is for a clock that is off.
	minValid = time.Minute
	maxValid = time.Hour
)

var (
	formField     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)
	vschars       = regexp.MustCompile(`^[\x20-\x7e]{1,512}$`)              // RFC 6749, appendix A: VSCHAR
	scopeToken    = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,256}$`) // RFC 6749, section 3.3: NQCHAR
	registryScope = regexp.MustCompile(`^[a-z0-9]+(\([a-z0-9]+\))?:[A-Za-z0-9._:/-]+:([a-z]+(,[a-z]+)*|\*)$`)
	githubApp     = regexp.MustCompile(`^([1-9][0-9]{0,18}|Iv[A-Za-z0-9.]{8,62})$`) // a number, or the app's client id
	wholeNumber   = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
	repository    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	permission    = regexp.MustCompile(`^[a-z][a-z_]{0,63}$`)
	principal     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}$`)
)

// signAlgorithms are those of RFC 7518, section 3.1, that sign with a private
// key, and EdDSA of RFC 8037. HMAC is none: its key would be the service's too.
var signAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// permissionLevels are what an installation's permission may be, least first.
var permissionLevels = []string{"read", "write", "admin"}

// destination reads the place under a key of an identity.
func (s *site) destination(n *strictyaml.Node, id *IdentitySpec, key string, use endpointUse) {
	v := s.f.Require(n, "an identity of kind "+id.kind, key)
	if v == nil {
		return
	}
	if v.Kind == strictyaml.String {
		s.bad(v.Pos, "type", "write "+key+": {url: "+use.example+"}", "%s must be a mapping, not text", key)
		return
	}
	if !s.f.Map(v, use.what, endpointKeys...) {
		return
	}
	id.place = &Place{}
	s.endpoint(v, &id.place.endpoint, use)
}

// word reads one constant of an identity into its params.
func (s *site) word(n *strictyaml.Node, id *IdentitySpec, key string, shape *regexp.Regexp, hint string) {
	v := n.Get(key)
	text, ok := s.f.Text(v, key)
	switch {
	case !ok:
		return
	case !shape.MatchString(text) || strings.TrimSpace(text) != text:
		s.bad(v.Pos, "identity", hint, "%q cannot be the %s of an identity of kind %s", text, key, id.kind)
	}
	id.params[key] = text
}

// mustWord is word for a key that has to be there.
func (s *site) mustWord(n *strictyaml.Node, id *IdentitySpec, key string, shape *regexp.Regexp, hint string) {
	s.f.Require(n, "an identity of kind "+id.kind, key)
	s.word(n, id, key, shape, hint)
}

// choice reads one word of a few; the first is what silence says.
func (s *site) choice(n *strictyaml.Node, id *IdentitySpec, key string, words ...string) {
	id.params[key] = words[0]
	if v := n.Get(key); v != nil {
		if w, ok := s.f.Word(v, key, words...); ok {
			id.params[key] = w
		}
	}
}

// wordList reads a list of different words whose order means nothing.
func (s *site) wordList(n *strictyaml.Node, key string, most int, shape *regexp.Regexp, hint string) []string {
	if n == nil {
		return nil
	}
	items := s.f.List(n, key)
	if n.Kind == strictyaml.Sequence && (len(items) == 0 || len(items) > most) {
		s.bad(n.Pos, "identity", "", "%s has one to %d entries", key, most)
	}
	var words []string
	for _, it := range items {
		if it.Kind == strictyaml.Mapping { // a:b in brackets is one to some readers
			s.bad(it.Pos, "type", "put it in quotes", "an entry of %s must be text, not %s", key, it.Kind)
			continue
		}
		w, ok := s.f.Text(it, "an entry of "+key)
		switch {
		case !ok:
		case !shape.MatchString(w):
			s.bad(it.Pos, "identity", hint, "%q cannot stand in %s", w, key)
		case slices.Contains(words, w):
			s.bad(it.Pos, "repeated", "", "%q stands twice in %s", w, key)
		default:
			words = append(words, w)
		}
	}
	slices.Sort(words)
	return words
}

const scopeHint = "one scope an entry: visible ASCII without space, quote and backslash"

func (s *site) scopes(n *strictyaml.Node, id *IdentitySpec, shape *regexp.Regexp, hint string) {
	if words := s.wordList(n.Get("scopes"), "scopes", maxScopes, shape, hint); len(words) > 0 {
		id.params["scopes"] = strings.Join(words, " ")
	}
}

const wordHint = "visible ASCII, at most 512 characters, without a space at either end"

func (s *site) oauthClient(n *strictyaml.Node, id *IdentitySpec) {
	s.destination(n, id, "token", endpointToken)
	s.mustWord(n, id, "client_id", vschars, wordHint)
	s.scopes(n, id, scopeToken, scopeHint)
	s.choice(n, id, "auth", "basic", "body")
	s.word(n, id, "audience", vschars, wordHint)
	s.resource(n, id)
}

// resource reads the indicator of RFC 8707, section 2: an absolute URI without a
// fragment.
func (s *site) resource(n *strictyaml.Node, id *IdentitySpec) {
	s.word(n, id, "resource", vschars, wordHint)
	text, ok := id.params["resource"]
	if !ok {
		return
	}
	if u, err := url.Parse(text); err != nil || !u.IsAbs() || strings.Contains(text, "#") || strings.ContainsAny(text, " \"\\") {
		s.bad(n.Get("resource").Pos, "identity", "such as https://api.example", "a resource is an absolute URI without a fragment")
	}
}

func (s *site) oauthRefresh(n *strictyaml.Node, id *IdentitySpec) {
	s.destination(n, id, "token", endpointToken)
	s.mustWord(n, id, "client_id", vschars, wordHint)
	s.scopes(n, id, scopeToken, scopeHint)
	s.choice(n, id, "auth", "basic", "body", "none")
}

func (s *site) jwtBearer(n *strictyaml.Node, id *IdentitySpec) {
	s.destination(n, id, "token", endpointToken)
	s.mustWord(n, id, "issuer", vschars, wordHint)
	s.word(n, id, "subject", vschars, wordHint)
	s.word(n, id, "audience", vschars, wordHint)
	s.scopes(n, id, scopeToken, scopeHint)
	s.choice(n, id, "algorithm", signAlgorithms...)
	s.word(n, id, "key_id", vschars, wordHint)
}

func (s *site) registryToken(n *strictyaml.Node, id *IdentitySpec) {
	s.destination(n, id, "token", endpointToken)
	id.username = s.username(n, id)
	id.params["username"] = id.username
	s.mustWord(n, id, "service", vschars, wordHint)
	s.f.Require(n, "an identity of kind registry_token", "scopes")
	s.scopes(n, id, registryScope, `such as "repository:team/app:pull"`)
}

func (s *site) githubApp(n *strictyaml.Node, id *IdentitySpec) {
	s.destination(n, id, "token", endpointGitHub)
	s.mustWord(n, id, "app_id", githubApp, `the app's number in quotes, such as "12345", or its client id`)
	s.mustWord(n, id, "installation", wholeNumber, `the installation's number in quotes, such as "678"`)
	if r := n.Get("repositories"); r != nil {
		s.repositories(r, id)
	}
	if p := n.Get("permissions"); p != nil {
		s.permissions(p, id)
	}
}

// repositories reads a list of names, or the constant of a target that holds the
// one of the call.
func (s *site) repositories(n *strictyaml.Node, id *IdentitySpec) {
	if n.Kind != strictyaml.Mapping {
		id.repositories = s.wordList(n, "repositories", maxRepositories, repository, "the repository's name alone, without its owner")
		if slices.Contains(id.repositories, ".") || slices.Contains(id.repositories, "..") {
			s.bad(n.Pos, "identity", "", "repositories cannot hold a dot alone")
		}
		if len(id.repositories) > 0 {
			id.params["repositories"] = string(validate.Canonical(anyTexts(id.repositories)))
		}
		return
	}
	if !s.f.Map(n, "repositories", "from") {
		return
	}
	from := s.f.Require(n, "repositories", "from")
	path, ok := s.f.Text(from, "from")
	if !ok {
		return
	}
	name, isConst := strings.CutPrefix(path, "target.")
	if !isConst || !constantPath(name) {
		s.bad(from.Pos, "identity", "such as {from: target.repo}: a constant under `with`", "%q is no constant of a target", path)
		return
	}
	id.repositoriesFrom = name
	id.params["repositories"] = string(validate.Canonical(map[string]any{"from": path}))
}

// constantPath says whether a path has the form of names divided by dots.
func constantPath(path string) bool {
	return !slices.ContainsFunc(strings.Split(path, "."), func(name string) bool { return !inputName.MatchString(name) })
}

func (s *site) permissions(n *strictyaml.Node, id *IdentitySpec) {
	if !s.f.Is(n, strictyaml.Mapping, "permissions") {
		return
	}
	if len(n.Members) == 0 || len(n.Members) > maxPermissions {
		s.bad(n.Pos, "identity", "such as {contents: write}", "permissions has one to %d names", maxPermissions)
	}
	out := map[string]any{}
	for _, m := range n.Members {
		if !permission.MatchString(m.Key) {
			s.bad(m.KeyPos, "identity", "small letters and _, as GitHub calls them, such as pull_requests", "%q is no name of a permission", m.Key)
		}
		out[m.Key], _ = s.f.Word(m.Value, "a permission", permissionLevels...)
	}
	id.params["permissions"] = string(validate.Canonical(out))
}

func (s *site) sshCertificate(n *strictyaml.Node, id *IdentitySpec) {
	p := s.f.Require(n, "an identity of kind ssh_certificate", "principals")
	if words := s.wordList(p, "principals", maxPrincipals, principal, "a user's name, such as deploy"); len(words) > 0 {
		id.params["principals"] = strings.Join(words, " ")
	}
	if v := s.f.Require(n, "an identity of kind ssh_certificate", "valid"); v != nil {
		if d, ok := s.f.Duration(v, "valid", minValid, maxValid); ok {
			if d%time.Second != 0 {
				s.bad(v.Pos, "range", "such as 90s", "valid is whole seconds")
			}
			id.params["valid"] = strconv.Itoa(int(d / time.Second))
		}
	}
	if v := n.Get("force_command"); v != nil {
		if yes, _ := s.f.Flag(v, "force_command"); yes {
			id.params["force_command"] = "true"
		}
	}
	if n.Get("sign") != nil {
		s.destination(n, id, "sign", endpointSign)
	}
}
