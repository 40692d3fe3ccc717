package main_test

import (
	"os"
	"strings"
	"testing"

	"chatelaine/internal/testkit"
)

// settingsOf runs `chatelained config` over a chatelaine.yaml.
func settingsOf(t *testing.T, text string, env ...string) ended {
	t.Helper()
	h := bare(t)
	if err := os.MkdirAll(h.places.Config, 0o700); err != nil {
		t.Fatal(err)
	}
	h.env = env
	h.write("c/chatelaine.yaml", text)
	h.write("c/bao.pem", string(testkit.CA(t).PEM()))
	return h.run([]string{"config"})
}

func TestSourcesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	got := settingsOf(t, `vault:
  sources:
    pass: {exec: [/usr/bin/pass, show, "{ref}"], env: [GNUPGHOME], exits: {absent: [1]}, first_line: true, timeout: 10s}
    bao: {kv: {address: "https://bao.example:8200/", ca: bao.pem, mount: team/kv, namespace: eu, approle: {role_id: 3f0a, mount: machines}}, keep: 1m}
    plain: {kv: {address: "https://bao.example", token: true}}
    unit: {credentials: true}
`, "GNUPGHOME=/home/planted-value")
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{
		"\nvault.generation_keychain false ",
		"\nvault.sources.pass        exec /usr/bin/pass show {ref}; env GNUPGHOME; timeout 10s; keep 5m",
		"vault.sources.bao         kv https://bao.example:8200, ca sha256:",
		", namespace eu, approle \"3f0a\" at machines; mount team/kv; timeout 5s; keep 1m",
		"vault.sources.plain       kv https://bao.example, token; timeout 5s; keep 5m",
		"vault.sources.unit        credentials the unit's credentials; timeout 5s; keep 5m",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no line %q in\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "planted-value") {
		t.Error("the value of a variable is shown")
	}
}

// Every mistake is told in one run, each with its place and the way out.
func TestMistakesInSources(t *testing.T) {
	t.Parallel()
	got := settingsOf(t, `vault:
  sources:
    a: {exec: [pass, show, "{ref}"]}
    b: {exec: [/usr/bin/pass, show]}
    c: {exec: [/usr/bin/pass, "x{ref}"], envs: [A]}
    d: {exec: [/usr/bin/pass, "{ref}"], env: [LD_PRELOAD], exits: {absnt: [1], locked: [0]}}
    e: {exec: [/usr/bin/pass, "{ref}"], exits: {absent: [1], denied: [1]}}
    f: {kv: {address: "http://bao.example", token: true}}
    g: {kv: {token: true}}
    h: {kv: {address: "https://bao.example", ca: none.pem, token: true}}
    i: {kv: {address: "https://bao.example", ca: chatelaine.yaml, token: true}}
    j: {kv: {address: "https://bao.example"}}
    k: {kv: {address: "https://bao.example", token: true, approle: {role_id: x}}}
    l: {kv: {address: "https://bao.example", mount: a//b, token: true}}
    m: {kv: {address: "https://bao.example", approle: {role: x}}}
    n: {credentials: true, env: [A]}
    o: {credentials: yes please}
    p: {kv: {}, credentials: true}
    q: {timeout: 5s}
    r: {credentials: true, timeout: 1m}
    s: {credentials: true, keep: 1s}
    T: {credentials: true}
`)
	if got.code != 2 {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{
		":3:5: vault.sources has more than 16 entries", ":3:15: vault.sources.a.exec: the program must be its whole path", ":4:15: vault.sources.b.exec: exactly one argument must be",
		":5:15: vault.sources.c.exec: argument 1 holds", "vault.sources.c has no key \"envs\"", "did you mean \"env\"?",
		"vault.sources.d.env: this variable changes which code", "vault.sources.d.exits has no key \"absnt\"", "did you mean \"absent\"?", "an entry of vault.sources.d.exits.locked must be a whole number from 1 to 125",
		"exit status 1 stands twice", ":8:23: vault.sources.f.kv.address: it must be https", "vault.sources.g.kv needs the key \"address\"",
		"vault.sources.h.kv.ca cannot be read", "vault.sources.i.kv.ca: there is no certificate", "vault.sources.j.kv must say exactly one way to log in",
		"vault.sources.k.kv must say exactly one way", "vault.sources.l.kv.mount: a path has no empty segment", "vault.sources.m.kv.approle has no key \"role\"", "needs the key \"role_id\"",
		"vault.sources.n.env is for a source of kind exec", "vault.sources.o.credentials must be true", "vault.sources.p must say exactly one kind", "vault.sources.q must say exactly one kind",
		"vault.sources.r.timeout must be from 500ms to 30s", "vault.sources.s.keep must be from 10s to 24h", ":22:5: the name of a source is",
	} {
		if !strings.Contains(got.err, want) {
			t.Errorf("no %q in\n%s", want, got.err)
		}
	}
}

// A token that somebody wrote into the file is not repeated.
func TestTokenInTheConfiguration(t *testing.T) {
	t.Parallel()
	got := settingsOf(t, "vault: {sources: {bao: {kv: {address: \"https://bao.example\", token: hvs.planted-in-the-file}}}}\n")
	if got.code != 2 || strings.Contains(got.err, "planted") || !strings.Contains(got.err, "a token never stands in this file") || !strings.Contains(got.err, "chatelaine vault source put bao") {
		t.Errorf("%+v", got)
	}
}
