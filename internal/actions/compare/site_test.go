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
identities:
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
	old := Site{Root: root, Digests: map[string]string{"ca one": "sha256:1", "keys signer": "sha256:2", "ca gone": "sha256:3"}}
	new := Site{Root: root, Digests: map[string]string{"ca one": "sha256:9", "keys signer": "sha256:8"}}
	if got := kindsOf(sites(old, new)); !slices.Equal(got, []string{"site-keys-changed", "site-trust-changed"}) {
		t.Errorf("%v", got)
	}
	if got := sites(old, old); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := kindsOf(sites(Site{Refused: true}, new)); !slices.Equal(got, []string{"old-refused"}) {
		t.Errorf("%v", got)
	}
}
