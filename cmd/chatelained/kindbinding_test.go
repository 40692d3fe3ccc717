package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// everyKind is a site file with each kind of identity that is stored.
const everyKind = `targets:
  deploy: {url: "https://deploy.example/api", identity: bot, actions: []}
  plain: {url: "https://plain.example", identity: key, actions: []}
  strict: {url: "https://strict.example:8443", identity: user, actions: []}
  events: {url: "https://events.example", identity: pager, actions: []}
  forms: {url: "https://forms.example", identity: fielded, actions: []}
  mesh: {url: "https://mesh.example", identity: mesh, actions: []}
  machines: {url: "https://machines.example", identity: machine, actions: []}
  people: {url: "http://[::1]:8080/v1", identity: person, actions: [], allow: [loopback]}
  code: {url: "https://code.example/api/v3", identity: app, actions: [], with: {repo: api}}
  code2: {url: "https://api.github.com", identity: app2, actions: []}
  robots: {url: "https://robots.example", identity: robot, actions: []}
  images: {url: "https://registry.example/v2", identity: images, actions: []}
  build: {ssh: {address: "build.example:22", user: deploy, host_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL0v+ub/A038R1gLyGvuhkXjzIzI/1LrlxKiYdB3QC/Z old"], shell: fish}, identity: host, actions: []}
  build2: {ssh: {address: "[::1]:2222", user: bot, host_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMoOpr+agdlD3Mt8QYsEUbWUsVeYeoTyeSbHVfYOHAYm", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL0v+ub/A038R1gLyGvuhkXjzIzI/1LrlxKiYdB3QC/Z"]}, identity: pass, actions: [], allow: [loopback]}
  build3: {ssh: {address: "build.example:22", user: bot, host_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL0v+ub/A038R1gLyGvuhkXjzIzI/1LrlxKiYdB3QC/Z"]}, identity: pass2, actions: []}
identities:
  bot: {kind: bearer}
  key: {kind: header, name: X-Api-Key, prefix: "Key "}
  user: {kind: basic, username: chatelaine}
  pager: {kind: body, json: /auth/routing_key}
  fielded: {kind: body, form: token}
  mesh: {kind: client_certificate}
  machine:
    kind: oauth2_client
    token: {url: "https://login.example/oauth2/token", pin: [sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=, sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]}
    client_id: "abc 1"
    scopes: [b, "a:b/c"]
    auth: body
    audience: orders
    resource: https://machines.example/api
  person: {kind: oauth2_refresh, token: {url: "http://127.0.0.1:8081/token/", allow: [loopback]}, client_id: abc, scopes: [read], auth: none}
  app: {kind: github_app, token: {url: "https://code.example/api/v3"}, app_id: "12345", installation: "678", repositories: {from: target.repo}, permissions: {contents: write, pull_requests: read}}
  app2: {kind: github_app, token: {url: "https://api.github.com"}, app_id: Iv23liabcdefgh, installation: "678", repositories: [web, api]}
  robot: {kind: jwt_bearer, token: {url: "https://login.example"}, issuer: bot@example, subject: someone, audience: https://login.example, scopes: ["https://scopes.example/all"], algorithm: ES256, key_id: k1}
  images: {kind: registry_token, token: {url: "https://auth.example/token"}, username: bot, service: registry.example, scopes: ["repository:team/app:pull,push"]}
  host: {kind: ssh_key}
  pass: {kind: ssh_certificate, principals: [deploy, bot], valid: 5m, force_command: true}
  pass2: {kind: ssh_certificate, principals: [deploy], valid: 1h, sign: {url: "https://bao.example/v1/ssh/sign/deploy"}}
`

// TestEveryKindOfTheSiteFileCanBeBound holds the loader and the vault together:
// what the one takes, the other binds to, and finds unchanged.
func TestEveryKindOfTheSiteFileCanBeBound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site, contracts := filepath.Join(dir, "targets.yaml"), filepath.Join(dir, "contracts")
	if err := os.Mkdir(contracts, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(site, []byte(everyKind), 0o600); err != nil {
		t.Fatal(err)
	}
	set, problems := actions.LoadSet(site, contracts)
	if set == nil {
		t.Fatal(problems)
	}
	v, err := vault.Create(filepath.Join(dir, "vault"), secret.New([]byte("a passphrase of the test")), vault.Options{KDF: vault.KDFParams{Time: 1, MemoryKiB: 8, Threads: 1}, DangerouslyWeakKDF: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, id := range set.Identities() {
		for _, target := range targetsOf(set, id.Name()) {
			seen[id.Kind()] = true
			b := siteBinding(id, target)
			_, err := v.Put(t.Context(), id.Name(), b, secret.New([]byte("no-key-but-a-secret-of-16")), false)
			// A secret that is no key is refused, after the binding was taken.
			if err != nil && !strings.Contains(err.Error(), "the secret cannot be used") {
				t.Errorf("%s (%s): %v", id.Name(), id.Kind(), err)
			}
		}
	}
	for _, i := range v.List() {
		id, _ := set.Identity(i.Name)
		if err := i.Binding.FitsSite(siteBinding(id, targetsOf(set, i.Name)[0])); err != nil {
			t.Errorf("%s: %v", i.Name, err)
		}
	}
	if len(seen) != 12 || len(v.List()) != 9 {
		t.Errorf("%d kinds, %d stored", len(seen), len(v.List()))
	}
}
