package actions

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every slip in an identity, in a place beside a target or in a target over SSH
// is told with its place and a way out.
func TestIdentityRefusals(t *testing.T) {
	all := driftDocs(t, "targets")[0]
	refusals(t, "testdata/identity_refusals.txt", func(s slip) Problems {
		text := edit(t, all, s.old, s.new)
		f := inFile(text)
		ps := readers["targets"](f)
		if fits(t, "targets", f) == nil {
			saidByLoaderOnly(t, s.name, ps, map[string]int{})
		}
		return ps
	})
}

// allKinds is the site file that has every kind.
func allKinds(t *testing.T) *site {
	t.Helper()
	s := parseSite(inFile(driftDocs(t, "targets")[0]), filepath.Join("testdata", "schema"))
	if ps := s.f.Problems(); len(ps) > 0 {
		t.Fatal(ps)
	}
	return s
}

// The constants of an identity are told in one spelling, whatever the order in
// which they were written.
func TestParamsOfIdentities(t *testing.T) {
	s := allKinds(t)
	for name, want := range map[string]string{
		"test-bot": `{}`, "key": `{}`, "user": `{}`, "nobody": `{}`, "mesh": `{}`, "host": `{}`,
		"pager":   `{"json":"/auth/routing_key"}`,
		"fielded": `{"form":"token"}`,
		"machine": `{"audience":"orders","auth":"body","client_id":"abc 1","resource":"https://machines.example/api","scopes":"a:b/c b"}`,
		"person":  `{"auth":"none","client_id":"abc","scopes":"read"}`,
		"app":     `{"app_id":"12345","installation":"678","permissions":"{\"contents\":\"write\",\"pull_requests\":\"read\"}","repositories":"{\"from\":\"target.repo\"}"}`,
		"app2":    `{"app_id":"Iv23liabcdefgh","installation":"678","repositories":"[\"api\",\"web\"]"}`,
		"robot":   `{"algorithm":"ES256","audience":"https://login.example","issuer":"bot@example","key_id":"k1","scopes":"https://scopes.example/all","subject":"someone"}`,
		"images":  `{"scopes":"repository:team/app:pull,push","service":"registry.example","username":"bot"}`,
		"pass":    `{"force_command":"true","principals":"bot deploy","valid":"300"}`,
		"pass2":   `{"principals":"deploy","valid":"3600"}`,
	} {
		got, err := json.Marshal(s.identities[name].Params())
		if err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), not %s", name, got, err, want)
		}
	}
	defaults := `{url: "https://login.example/t"}, client_id: abc}`
	again := edit(t, driftDocs(t, "targets")[0], "  pass2:", "  plain: {kind: oauth2_client, token: "+defaults+"\n  plainer: {kind: oauth2_refresh, token: "+defaults+"\n  plainest: {kind: jwt_bearer, token: {url: https://login.example}, issuer: a}\n  pass2:")
	d := parseSite(inFile(again), filepath.Join("testdata", "schema"))
	for name, want := range map[string]string{"plain": "map[auth:basic client_id:abc]", "plainer": "map[auth:basic client_id:abc]", "plainest": "map[algorithm:RS256 issuer:a]"} {
		if got := fmt.Sprint(d.identities[name].Params()); got != want {
			t.Errorf("%s: what nobody wrote is %s, not %s", name, got, want)
		}
	}
	if p := d.identities["plainest"].Token(); p.Path() != "/" {
		t.Errorf("no path is %q", p.Path())
	}
}

// Where a secret goes beside its target, and in which header what it is
// exchanged for.
func TestPlacesOfIdentities(t *testing.T) {
	s := allKinds(t)
	for name, want := range map[string]string{
		"machine": "https login.example 443 /oauth2/token false true 2", "person": "http 127.0.0.1 8081 /token/ true false 0",
		"app": "https code.example 443 /api/v3 false false 0", "app2": "https api.github.com 443  false false 0",
		"pass2": "https bao.example 443 /v1/ssh/sign/deploy false false 0",
	} {
		p := s.identities[name].Token()
		if got := fmt.Sprint(p.Scheme(), " ", p.Host(), " ", p.Port(), " ", p.Path(), " ", p.AllowLoopback(), " ", p.AllowPrivate(), " ", len(p.Pins())); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
	exchanging := []string{}
	for _, name := range slices.Sorted(maps.Keys(s.identities)) {
		id := s.identities[name]
		if id.Exchanges() {
			exchanging = append(exchanging, name)
			if id.HeaderName() != "Authorization" || id.Prefix() != "Bearer " || id.Token() == nil {
				t.Errorf("%s: a token does not travel as bearer", name)
			}
		} else if id.Token() != nil && id.Kind() != KindSSHCertificate {
			t.Errorf("%s has a place that nothing goes to", name)
		}
	}
	same(t, "exchanging", exchanging, []string{"app", "app2", "images", "machine", "person", "robot"})
	for _, name := range []string{"pager", "fielded", "mesh", "host", "pass"} {
		if s.identities[name].HeaderName() != "" {
			t.Errorf("%s stands in a header", name)
		}
	}
	if s.identities["images"].Username() != "bot" || s.identities["mesh"].Check() != "get_me" || s.identities["pager"].Ask() != AskSession {
		t.Error("a part of an identity is lost")
	}
}

func TestTargetsOverSSH(t *testing.T) {
	s := allKinds(t)
	b := s.targets["build-host"]
	p, ok := b.SSH()
	if !ok || p.Address() != "build.example:22" || p.User() != "deploy" || p.Shell() != "fish" || len(p.HostKeys()) != 1 || fmt.Sprint(p.ReadCommands()) != "[[systemctl show] [uptime]]" {
		t.Errorf("%+v", p)
	}
	if b.Scheme() != "ssh" || b.Host() != "build.example" || b.Port() != 22 || !b.AllowPrivate() || b.Identity() != "host" || !b.AllowsEffect(Change) {
		t.Error("the target is not whole")
	}
	o, _ := s.targets["old-host"].SSH()
	if o.Shell() != "posix" || len(o.HostKeys()) != 2 || slices.ContainsFunc(o.HostKeys(), func(k string) bool { return strings.Count(k, " ") != 1 }) {
		t.Errorf("%+v", o)
	}
	if _, ok := s.targets["local"].SSH(); ok {
		t.Error("a target over HTTPS is one over SSH")
	}
}

// A contract that would go to a target over SSH is refused as one of a later
// release, and only there where the target lists it.
func TestNoContractGoesOverSSH(t *testing.T) {
	key := strings.Fields(driftDocs(t, "targets")[0][strings.Index(driftDocs(t, "targets")[0], "ssh-ed25519"):])[1]
	key = "ssh-ed25519 " + strings.Trim(key, `"],`)
	site := edit(t, goodSite, "    url: https://deploy.prod.example:8443\n    identity: prod-bot", "    ssh: {address: 'deploy.example:22', user: deploy, host_keys: ['"+key+"']}\n    identity: prod-bot", "prod-bot: {kind: header, name: X-Api-Key}", "prod-bot: {kind: ssh_key}")
	_, ps := load(t, site, goodContract)
	same(t, "listed", told(ps), []string{`23:41 not-in-this-release the target "deploy-prod" is reached over SSH; steps over SSH belong to the format, but this release does not take them yet`})
	mustLoad(t, edit(t, site, "    actions: [start_release]\n    effects: [change]", "    actions: []\n    effects: [change]"), goodContract)
}

// A target's digest covers all that its identity is, with the bytes of the
// authority of its token endpoint.
func TestDigestCoversTheIdentity(t *testing.T) {
	withToken := func(rest string) string {
		return edit(t, goodSite, "test-bot: {kind: bearer}", "test-bot: {kind: oauth2_client, token: {url: 'https://login.example/token'"+rest)
	}
	base := withToken("}, client_id: a, scopes: [x]}")
	digests := map[[32]byte]string{}
	note := func(name string, set *Set) {
		tg, _ := set.Target("deploy-test")
		for _, d := range [][32]byte{tg.Digest(), set.Digest()} {
			if other := digests[d]; other != "" {
				t.Errorf("%s has a digest of %s", name, other)
			}
			digests[d] = name
		}
	}
	for _, e := range [][2]string{{"a", "a"}, {"/token'", "/tokens'"}, {"login.", "logon."}, {"[x]", "[x, y]"}, {"client_id: a", "client_id: b"}, {"[x]", "[x], auth: body"}, {"[x]", "[x], audience: z"}, {"/token'", "/token', allow: [private]"}} {
		text := base
		if e[0] != e[1] {
			text = edit(t, base, e[0], e[1])
		}
		set, _ := mustLoad(t, text, goodContract)
		note(e[1], set)
	}
	site, dir := write(t, withToken(", ca: login.pem}, client_id: a, scopes: [x]}"), goodContract)
	for i := range 2 {
		replaceFile(t, filepath.Join(filepath.Dir(site), "login.pem"), authority(t, int64(i+1)))
		set, ps := LoadSet(site, dir)
		if len(ps) > 0 {
			t.Fatal(ps)
		}
		note(fmt.Sprint("authority ", i), set)
		id, _ := set.Identity("test-bot")
		if len(id.Token().CAPEM()) == 0 || id.Token().CADigest() == "" {
			t.Error("the authority of the token endpoint is lost")
		}
	}
}

const proofContract = `contract: v1
action: get_me
version: 1.0.0
summary: Tell who we are.
owner: release team
effect: read
input: {type: object, additionalProperties: false, properties: {}}
route: {target: deploy-test}
request:
  method: GET
  path: /v1/me
  outcomes:
    - status: 200
      expect: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, maxLength: 20}}}
      success: {id: /id}
result: {type: object, additionalProperties: false, required: [id], properties: {id: {type: string, pattern: '^u[0-9]{1,8}$', maxLength: 9}}}
`

// A check is an action that reads, needs nothing and goes nowhere else.
func TestChecksOfIdentities(t *testing.T) {
	site := edit(t, goodSite, "test-bot: {kind: bearer}", "test-bot: {kind: bearer, check: get_me}", "identity: test-bot\n    actions: [start_release]", "identity: test-bot\n    actions: [get_me]")
	if set, _ := mustLoad(t, site, proofContract); len(set.Identities()) == 0 {
		t.Fatal("no identity")
	}
	optional := edit(t, proofContract, "properties: {}}\nroute", "properties: {page: {type: integer, minimum: 1, maximum: 9}}}\nroute")
	mustLoad(t, site, optional)
	for name, c := range map[string]struct{ site, contract, want string }{
		"no such action":    {edit(t, site, "check: get_me", "check: get_you"), proofContract, `15:35 identity-check there is no action "get_you" to check the identity "test-bot" with`},
		"a change":          {site, edit(t, proofContract, "effect: read", "effect: change\nat_most_once: it is a test\napproval: {sentence: 'Do it'}", "method: GET", "method: POST"), `15:35 identity-check the action get_me does not only read: its effect is change`},
		"an input":          {site, edit(t, proofContract, "properties: {}}\nroute", "required: [page], properties: {page: {type: integer, minimum: 1, maximum: 9}}}\nroute"), `15:35 identity-check the action get_me needs an input, and a check has none to give`},
		"another target":    {edit(t, site, "kind: header, name: X-Api-Key", "kind: header, name: X-Api-Key, check: get_me"), proofContract, `16:52 identity-check the action get_me goes to the target "deploy-test", whose identity is "test-bot"`},
		"a target that not": {edit(t, site, "actions: [get_me]", "actions: [get_you]"), proofContract, `15:35 identity-check the target "deploy-test" does not list the action get_me, so that no check could be made`},
	} {
		_, ps := load(t, c.site, c.contract)
		same(t, name, told(ps), []string{c.want})
		if len(ps) > 0 && ps[0].Hint == "" {
			t.Errorf("%s: no way out", name)
		}
	}
	// One that does not load says why itself.
	_, ps := load(t, site, edit(t, proofContract, "effect: read", "effect: raed"))
	if len(ps) != 1 || ps[0].Rule != "word" {
		t.Errorf("%v", told(ps))
	}
}

// Who writes contracts against somebody else's site file need not have the action
// that proves an identity; the daemon has to.
func TestChecksOfDrafts(t *testing.T) {
	sitePath, _ := write(t, edit(t, goodSite, "test-bot: {kind: bearer}", "test-bot: {kind: bearer, check: get_me}"), goodContract)
	_, own := write(t, goodSite, goodContract)
	beside := filepath.Join(filepath.Dir(sitePath), "contracts")
	for _, c := range []struct {
		contracts string
		load      func(site, contracts string) (*Set, Problems)
		loads     bool
	}{{beside, LoadSet, false}, {own, LoadSet, false}, {beside, LoadDrafts, true}, {own, LoadDrafts, true}} {
		set, ps := c.load(sitePath, c.contracts)
		if (len(ps) == 0) != c.loads || (set != nil) != c.loads || !c.loads && ps[0].Rule != "identity-check" {
			t.Errorf("%s: %v", c.contracts, told(ps))
		}
	}
	if rev := ReviewFolder(sitePath, own); len(rev.Problems) > 0 {
		t.Error(rev.Problems)
	}
	if rev := ReviewFolder(sitePath, beside); len(rev.Problems) != 1 {
		t.Error(rev.Problems)
	}
}
