package compare

import (
	"slices"
	"strings"
	"testing"
)

const siteBase = `targets:
  one:
    url: https://one.example/api
    identity: bot
    actions: [read_it, write_it]
    effects: [read, change]
    ask: every_call
    ca: ca.pem
    pin: [sha256/AAA, sha256/BBB]
    headers: {X-Org: "7"}
    version_headers: [X-Version]
    read_by_post: [/search]
    keeps_escaped_slash: true
    allow: [private]
    http2: true
    with: {owner: acme}
  two: {url: "https://two.example", identity: bot, actions: [read_it]}
  host:
    ssh: {address: "host.example:22", user: deploy, host_keys: ["ssh-ed25519 A", "ssh-rsa B"]}
    identity: pass
    actions: []
    read_commands: [[systemctl, show], [uptime]]
identities:
  machine: {kind: oauth2_client, token: {url: "https://login.example/token", ca: login.pem, pin: [sha256/C, sha256/D]}, client_id: a, scopes: [x, y], check: read_it}
  app: {kind: github_app, token: {url: "https://api.github.com"}, app_id: "1", installation: "2", repositories: [web, docs], permissions: {contents: write, issues: read}}
  robot: {kind: jwt_bearer, token: {url: "https://robots.example/token"}, issuer: a}
  pass: {kind: ssh_certificate, principals: [deploy, bot], valid: 5m, force_command: true, sign: {url: "https://bao.example/v1/sign"}}
  bot: {kind: bearer, ask: every_call}
  key: {kind: header, name: X-Key}
lists:
  names:
    alpha: {target: one, with: {id: 1}}
    beta: {target: two}
keys:
  signer: {jwks: signer.json}
`

func TestSiteEdits(t *testing.T) {
	for _, e := range []struct {
		from, to, kinds string
		loosens         bool
	}{
		{"https://one.example/api", "https://one.example", "site-address-changed", yes},
		{"    identity: bot\n", "    identity: key\n", "site-identity-switched", yes},
		{"[read_it, write_it]", "[read_it, write_it, drop_it]", "site-action-listed", yes},
		{"[read_it, write_it]", "[read_it]", "site-action-unlisted", nay},
		{"[read_it, write_it]", "[write_it, read_it]", "spelling", nay},
		{"[read, change]", "[read, change, destroy]", "site-effect-added", yes},
		{"    effects: [read, change]\n", "", "site-effect-removed", nay},
		{"actions: [read_it]}", "actions: [read_it], effects: [read]}", "spelling", nay},
		{"    ask: every_call\n", "    ask: session\n", "site-ask-looser", yes},
		{"    ask: every_call\n", "", "site-ask-looser", yes},
		{"    ca: ca.pem\n", "", "site-trust-changed", yes},
		{"    pin: [sha256/AAA, sha256/BBB]\n", "", "site-pin-removed", yes},
		{"sha256/BBB", "sha256/CCC", "site-trust-changed", yes},
		{"actions: [read_it]}", "actions: [read_it], pin: [sha256/A, sha256/B]}", "site-pin-added", nay},
		{`X-Org: "7"`, `X-Org: "8"`, "site-headers-changed", yes},
		{"[X-Version]", "[x-version]", "spelling", nay},
		{"[X-Version]", "[X-Version, X-More]", "site-version-header-added", yes},
		{"[/search]", "[/search, /run]", "site-read-by-post-added", yes},
		{"    keeps_escaped_slash: true\n", "", "site-escaped-slash-off", nay},
		{"[private]", "[private, loopback]", "site-network-added", yes},
		{"    http2: true\n", "", "site-http2-changed", nay},
		{"owner: acme", "owner: emca", "site-constants-changed", yes},
		{"    http2: true\n", "    http2: true\n    trust: all\n", "changed", yes},
		{"  two: {url: \"https://two.example\", identity: bot, actions: [read_it]}\n", "", "site-target-removed", nay},
		{"bot: {kind: bearer, ask", "bot: {kind: none, ask", "site-identity-changed", yes},
		{"bot: {kind: bearer, ask: every_call}", "bot: {kind: bearer}", "site-ask-looser", yes},
		{"name: X-Key}", "name: X-Key, prefix: k}", "site-identity-changed", yes},
		{"  key: {kind: header, name: X-Key}\n", "", "site-identity-removed", nay},
		{"https://login.example/token", "https://logon.example/token", "site-exchange-changed", yes},
		{"https://bao.example/v1/sign", "https://bao.example/v1/sign/all", "site-exchange-changed", yes},
		{", sign: {url: \"https://bao.example/v1/sign\"}", "", "site-exchange-changed", yes},
		{", ca: login.pem", "", "site-trust-changed", yes},
		{", pin: [sha256/C, sha256/D]", "", "site-pin-removed", yes},
		{"sha256/D]}", "sha256/D], allow: [private]}", "site-network-added", yes},
		{"client_id: a", "client_id: b", "site-identity-changed", yes},
		{"client_id: a", "client_id: a, auth: basic", "spelling", nay},
		{"client_id: a", "client_id: a, auth: body", "site-identity-changed", yes},
		{"issuer: a", "issuer: a, algorithm: RS256", "spelling", nay},
		{"issuer: a", "issuer: a, algorithm: ES256", "site-identity-changed", yes},
		{"issuer: a", "issuer: a, subject: b", "site-identity-changed", yes},
		{"scopes: [x, y]", "scopes: [y, x]", "spelling", nay},
		{"scopes: [x, y]", "scopes: [x, y, z]", "site-grant-added", yes},
		{"scopes: [x, y]", "scopes: [x]", "site-grant-removed", nay},
		{", scopes: [x, y]", "", "site-grant-opened", yes},
		{"check: read_it", "check: read_more", "site-check-changed", nay},
		{"[web, docs]", "[web, docs, all]", "site-grant-added", yes},
		{"[web, docs]", "{from: target.repo}", "site-identity-changed", yes},
		{", repositories: [web, docs]", "", "site-grant-opened", yes},
		{"issues: read", "issues: write", "site-grant-added", yes},
		{"contents: write", "contents: read", "site-grant-removed", nay},
		{"issues: read", "issues: read, checks: read", "site-grant-added", yes},
		{", permissions: {contents: write, issues: read}", "", "site-grant-opened", yes},
		{"[deploy, bot]", "[deploy, bot, root]", "site-grant-added", yes},
		{"valid: 5m", "valid: 10m", "site-valid-longer", yes},
		{"valid: 5m", "valid: 300s", "spelling", nay},
		{", force_command: true", "", "site-force-command-off", yes},
		{"host.example:22", "other.example:22", "site-address-changed", yes},
		{"user: deploy", "user: root", "site-identity-switched", yes},
		{`"ssh-rsa B"]`, `"ssh-rsa B", "ssh-rsa C"]`, "site-host-key-added", yes},
		{`"ssh-rsa B"]`, `"ssh-rsa B"], shell: fish`, "site-shell-changed", yes},
		{"[uptime]", "[uptime], [cat]", "site-read-command-added", yes},
		{"    beta: {target: two}\n", "    beta: {target: two}\n    gamma: {target: one}\n", "site-list-entry-added", yes},
		{"beta: {target: two}", "beta: {target: one}", "site-list-entry-changed", yes},
		{"with: {id: 1}", "with: {id: 2}", "site-list-entry-changed", yes},
		{"signer.json", "other.json", "site-keys-changed", yes},
		{"keys:\n  signer: {jwks: signer.json}\n", "", "site-keys-removed", nay},
		{"keys:\n", "vault: none\nkeys:\n", "changed", yes},
	} {
		if strings.Count(siteBase, e.from) != 1 {
			t.Fatalf("%q stands %d times", e.from, strings.Count(siteBase, e.from))
		}
		old, new := Site{Root: parse(t, "old", siteBase)}, Site{Root: parse(t, "new", strings.Replace(siteBase, e.from, e.to, 1))}
		there, back := sites(old, new), sites(new, old)
		want := strings.Fields(e.kinds)
		if got := kindsOf(there); !slices.Equal(got, want) {
			t.Errorf("%q → %q: %v, want %v", e.from, e.to, got, want)
			continue
		}
		if got := loosening(there) > 0; got != e.loosens {
			t.Errorf("%q → %q: loosens is %v", e.from, e.to, got)
		}
		if got := kindsOf(back); !slices.Equal(got, []string{rules[want[0]].Back}) {
			t.Errorf("%q → %q: back %v", e.from, e.to, got)
		}
	}
}

// A file of the same name may hold something else.
func TestSiteFiles(t *testing.T) {
	root := parse(t, "site", siteBase)
	old := Site{Root: root, Digests: map[string]string{"ca one": "sha256:1", "keys signer": "sha256:2", "ca gone": "sha256:3", "token machine": "sha256:4"}}
	new := Site{Root: root, Digests: map[string]string{"ca one": "sha256:9", "keys signer": "sha256:8", "token machine": "sha256:5"}}
	if got := kindsOf(sites(old, new)); !slices.Equal(got, []string{"site-keys-changed", "site-trust-changed", "site-trust-changed"}) {
		t.Errorf("%v", got)
	}
	if got := sites(old, old); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := kindsOf(sites(Site{Refused: true}, new)); !slices.Equal(got, []string{"old-refused"}) {
		t.Errorf("%v", got)
	}
}
