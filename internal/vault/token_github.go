package vault

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/secret"
)

// githubVersion is the version of GitHub's API that these requests are written
// for; without it GitHub takes whichever is its default by then.
const githubVersion = "2022-11-28"

// installationLife is how long GitHub's installation tokens live.
const installationLife = time.Hour

// levels of a permission, least first.
var levels = []string{"", "read", "write", "admin"}

// scope is what an installation token is asked for. Nil parts ask for all that the
// installation has.
type scope struct {
	Repositories []string          `json:"repositories,omitempty"`
	Permissions  map[string]string `json:"permissions,omitempty"`
}

// scope is what the binding names, narrowed to what the call needs.
func (b Binding) scope(n Narrow) (scope, error) {
	var s scope
	if text := b.Param("permissions"); text != "" {
		if err := json.Unmarshal([]byte(text), &s.Permissions); err != nil {
			return scope{}, fault.Newf(fault.Internal, "the bound permissions cannot be read")
		}
	}
	for name := range s.Permissions {
		if n.ReadOnly {
			s.Permissions[name] = "read"
		}
	}
	if slices.Contains(n.Repositories, "") {
		return scope{}, fault.Newf(fault.TargetNotAllowed, "the identity's repository comes from the target, and the target names none")
	}
	text := b.Param("repositories")
	var from struct{ From string }
	switch {
	case text == "":
		s.Repositories = n.Repositories
	case json.Unmarshal([]byte(text), &s.Repositories) == nil:
		if len(n.Repositories) > 0 {
			for _, r := range n.Repositories {
				if !slices.Contains(s.Repositories, r) {
					return scope{}, fault.Newf(fault.TargetNotAllowed, "the call wants a repository that the identity does not name")
				}
			}
			s.Repositories = n.Repositories
		}
	case json.Unmarshal([]byte(text), &from) == nil && from.From != "" && len(n.Repositories) == 1:
		s.Repositories = n.Repositories
	default:
		// Without its one repository the token would be good for all of them.
		return scope{}, fault.Newf(fault.TargetNotAllowed, "the identity's repository comes from the target, and the target names none")
	}
	return s, nil
}

// key is the narrowing as a part of a token's name: canonical, since maps are
// written with sorted names.
func (s scope) key() string {
	s.Repositories = slices.Sorted(slices.Values(s.Repositories))
	b, err := json.Marshal(s)
	if err != nil {
		panic("vault: a list of texts has no JSON form: " + err.Error())
	}
	return string(b)
}

// installationToken signs in as a GitHub App and asks for a token of one
// installation: POST /app/installations/ID/access_tokens.
func (e exchanging) installationToken(ctx context.Context) (minted, error) {
	s, err := e.binding.scope(e.narrow)
	if err != nil {
		return minted{}, err
	}
	jwt, err := e.signed(newClaims(e.binding.Param("app_id")), "")
	if err != nil {
		return minted{}, err
	}
	defer jwt.Wipe()
	r, c := e.request("POST"), e.credential()
	r.Path += "/app/installations/" + url.PathEscape(e.binding.Param("installation")) + "/access_tokens"
	r.Header = http.Header{"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {githubVersion}}
	r.MediaType = "application/json"
	r.Body = []byte(s.key())
	c.watch(jwt)
	c.header = func() (value string) {
		jwt.Use(func(b []byte) { value = "Bearer " + string(b) })
		return value
	}
	return e.token(ctx, r, c, tokenRules{
		names: []string{"token"}, created: true, unsaid: installationLife,
		statuses: map[int]string{
			http.StatusNotFound:            "the app has no such installation",
			http.StatusUnprocessableEntity: "the installation does not have these repositories or permissions",
		},
		accept: s.accept,
	})
}

// accept refuses a token that is good for more than was asked, and reads when it
// ends. The end is a time of day: it is compared with the server's own clock, where
// the answer shows that.
func (s scope) accept(a TokenAnswer, members jsonMembers, m *minted) error {
	if text, ok := members.str("expires_at"); ok {
		end, err := time.Parse(time.RFC3339, string(text))
		if err != nil {
			return invalidAnswer("its expires_at is not a time")
		}
		now := m.at
		if date, err := http.ParseTime(a.Header.Get("Date")); err == nil {
			now = date
		}
		if m.life = min(end.Sub(now), m.life); m.life <= 0 {
			return invalidAnswer("its token has expired already")
		}
	}
	if all, _ := members.str("repository_selection"); len(s.Repositories) > 0 && string(all) == "all" {
		return invalidAnswer("its token is good for every repository, and was asked for a few")
	}
	if err := s.acceptRepositories(members["repositories"]); err != nil {
		return err
	}
	if len(s.Permissions) == 0 {
		return nil
	}
	return s.acceptPermissions(members["permissions"])
}

// acceptRepositories refuses one that was not asked for. GitHub names them where it
// was asked for some; capitals mean nothing there.
func (s scope) acceptRepositories(v jsonValue) error {
	if len(s.Repositories) == 0 || v.kind == 0 || v.kind == jsonNull {
		return nil
	}
	all, ok := readObjects(v)
	for _, r := range all {
		name, is := r.str("name")
		ok = ok && is && slices.ContainsFunc(s.Repositories, func(asked string) bool { return strings.EqualFold(asked, string(name)) })
		r.wipe()
	}
	if !ok {
		return invalidAnswer("its token is good for another repository than was asked for")
	}
	return nil
}

// acceptPermissions lets a permission to read through that was not asked for:
// GitHub adds metadata to each token.
func (s scope) acceptPermissions(v jsonValue) error {
	if v.kind != jsonObject {
		return invalidAnswer("it does not say what its token may do")
	}
	given, err := readObject(v.text)
	if err != nil {
		return invalidAnswer(err.Error())
	}
	defer given.wipe()
	for name, level := range given {
		asked := max(slices.Index(levels, s.Permissions[name]), 1)
		if got := slices.Index(levels, string(level.text)); level.kind != jsonString || got < 0 || got > asked {
			return invalidAnswer("its token may do more than was asked for")
		}
	}
	return nil
}

// signed makes an assertion with the identity's key.
func (e exchanging) signed(c claims, id string) (secret.Secret, error) {
	var out secret.Secret
	err := errLeaseClosed
	e.secret.Use(func(text []byte) {
		if len(text) == 0 {
			return
		}
		var k signingKey
		if k, err = parseSigningKey(text, e.binding.algorithm()); err != nil {
			return
		}
		if id == "" {
			id = k.id
		}
		var jwt []byte
		if jwt, err = k.sign(c, id); err == nil {
			out = secret.New(jwt)
			clear(jwt)
		}
	})
	if err != nil {
		return secret.Secret{}, fault.New(fault.IdentityUnavailable, fmt.Errorf("identity %s: %w; put it again", e.name, err))
	}
	return out, nil
}

// watch makes answers searched for an assertion in place of the key that signed it,
// which is not sent.
func (c *tokenCredential) watch(jwt secret.Secret) {
	jwt.Use(func(b []byte) { c.secrets = []secret.Secret{secret.New(signature(b))} })
}
