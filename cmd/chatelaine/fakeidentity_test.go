package main

import (
	"encoding/base64"
	"net/http"
	"time"
)

// fakeIdentity is the one identity of the fake daemon: what it stores says what
// state it is in, the option identity=WORD makes it another one, kind=WORD another
// kind, and check=ACTION names what proves it.
func (d *fakeDaemon) fakeIdentity(name string) obj {
	x := obj{"name": name, "kind": "bearer", "destination": "", "stored": d.secret != "", "generation": 0, "targets": []string{"deploy-test"}, "suspended": false, "state": "missing"}
	if k := d.options["kind"]; k != "" {
		x["kind"] = k
	}
	if d.secret != "" {
		x["state"], x["generation"], x["destination"] = "stored", 1, "https://deploy.test.example:443/api"
		x["label"], x["updated"] = "Jane's \u202ekey", time.Now().Add(-75*24*time.Hour)
		x["last_used"] = time.Now().Add(-5*time.Minute - time.Second)
	}
	switch word := d.options["identity"]; word {
	case "suspended":
		x["suspended"], x["state"] = true, word
		x["last_failure"] = obj{"code": "INVALID_RESPONSE", "at": time.Now().Add(-2*time.Hour - time.Second), "generation": 1}
	case "expires soon":
		x["state"], x["expires"] = word, time.Now().Add(10*24*time.Hour+time.Hour)
		x["last_failure"] = obj{"code": "REMOTE_UNAUTHENTICATED", "at": time.Now().Add(-3*24*time.Hour - time.Second), "generation": 7}
	case "bound elsewhere":
		x["state"] = word
	}
	return x
}

func (d *fakeDaemon) identityDetail(name string) obj {
	x := d.fakeIdentity(name)
	x["check"], x["differs"] = d.options["check"], []obj{}
	x["actions"] = []obj{{"action": "deploy_release", "effect": "change", "target": "deploy-test"}}
	x["binding"] = []obj{}
	if d.secret != "" {
		x["binding"] = []obj{{"part": "kind", "value": "bearer"}, {"part": "scheme", "value": "https"}, {"part": "host", "value": "deploy.test.example"}, {"part": "port", "value": "443"},
			{"part": "base path", "value": "/api"}, {"part": "CA", "value": ""}, {"part": "pins", "value": ""}}
	}
	if d.options["identity"] == "bound elsewhere" {
		x["why"] = "targets.yaml names another destination than the secret is bound to"
		x["differs"] = []obj{{"target": "deploy-test", "part": "host", "bound": "deploy.test.example", "now": "new.example"}, {"target": "deploy-test", "part": "CA", "bound": "", "now": "sha256:00ff"}}
	}
	if !d.open {
		for _, part := range []string{"label", "updated", "last_used", "generation", "destination"} {
			delete(x, part)
		}
		x["state"], x["why"], x["stored"], x["binding"] = "vault locked", "the vault is locked (VAULT_LOCKED)", false, []obj{}
	}
	return x
}

func (d *fakeDaemon) identityRoutes(m *http.ServeMux) {
	locked := func(w http.ResponseWriter) bool {
		if !d.open {
			opError(w, 423, "VAULT_LOCKED", "The vault is locked; the operator must unlock it.", "VAULT_LOCKED", 0)
		}
		return !d.open
	}
	m.HandleFunc("GET /v1/identities", func(w http.ResponseWriter, _ *http.Request) {
		if !locked(w) {
			reply(w, 200, obj{"identities": []obj{d.fakeIdentity("deploy-test-bot")}})
		}
	})
	m.HandleFunc("GET /v1/identities/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") != "deploy-test-bot" {
			opError(w, 404, "NOT_FOUND", "There is nothing of that name.", "no identity", 0)
			return
		}
		reply(w, 200, d.identityDetail("deploy-test-bot"))
	})
	m.HandleFunc("POST /v1/identities/{name}/check", func(w http.ResponseWriter, r *http.Request) {
		if locked(w) {
			return
		}
		x := d.fakeIdentity(r.PathValue("name"))
		bound := d.options["identity"] != "bound elsewhere"
		target := obj{"target": "deploy-test", "bound": bound && d.secret != ""}
		if !bound {
			target["detail"] = "TARGET_NOT_ALLOWED: host"
		}
		reply(w, 200, obj{"name": x["name"], "stored": x["stored"], "suspended": x["suspended"], "usable": d.secret != "" && x["suspended"] == false && bound,
			"action": d.options["check"], "targets": []obj{target}})
	})
	m.HandleFunc("POST /v1/identities/{name}/prove", func(w http.ResponseWriter, r *http.Request) {
		if d.proofs == 0 {
			opError(w, 403, "PROOF_REQUIRED", "This needs a read session.", "", 0)
			return
		}
		action := d.options["check"]
		if a, ok := body(r)["action"].(string); ok {
			action = a
		}
		reply(w, 200, d.fakeProof(action))
	})
	d.identityWrites(m)
}

// fakeProof ends as the option proof=CODE says.
func (d *fakeDaemon) fakeProof(action string) obj {
	p := obj{"request_id": "act_prove0001", "action": action, "target": "deploy-test", "ok": true, "data": obj{"account": "robot"},
		"display": obj{"scopes": obj{"text": "read\u202e write", "truncated": false}}}
	if code := d.options["proof"]; code != "" {
		delete(p, "data")
		delete(p, "display")
		p["ok"], p["code"], p["message"], p["cause"] = false, code, "A sentence.", "401 of the remote"
	}
	return p
}

func (d *fakeDaemon) identityWrites(m *http.ServeMux) {
	m.HandleFunc("PUT /v1/identities/{name}", func(w http.ResponseWriter, r *http.Request) {
		b := body(r)
		if !d.proven(w, b) {
			return
		}
		text, _ := b["secret"].(string)
		s, _ := base64.StdEncoding.DecodeString(text)
		if source, ok := b["source"].(string); ok {
			s = []byte("fetched from " + source)
		}
		if len(s) < 16 && b["short"] != true {
			opError(w, 400, "INVALID_ARGUMENT", "The request is not well-formed.", "the secret has fewer than 16 bytes; --short takes it", 0)
			return
		}
		d.secret = string(s)
		out := obj{"name": r.PathValue("name"), "generation": 2, "destination": "https://deploy.test.example:443/api"}
		if e, ok := b["expires"]; ok {
			out["expires"] = e
		}
		reply(w, 200, out)
	})
	m.HandleFunc("POST /v1/identities/{name}/rotate", func(w http.ResponseWriter, r *http.Request) {
		b := body(r)
		if !d.proven(w, b) {
			return
		}
		out := obj{"rotated": true, "stored": obj{"name": r.PathValue("name"), "generation": 5, "destination": "https://deploy.test.example:443/api"}}
		if b["unproved"] != true {
			action := d.options["check"]
			if a, ok := b["action"].(string); ok {
				action = a
			}
			if out["proof"] = d.fakeProof(action); d.options["proof"] != "" {
				out["rotated"] = false
				delete(out, "stored")
			}
		}
		if out["rotated"] == true {
			s, _ := base64.StdEncoding.DecodeString(b["secret"].(string))
			d.secret = string(s)
		}
		reply(w, 200, out)
	})
	m.HandleFunc("DELETE /v1/identities/{name}", func(w http.ResponseWriter, r *http.Request) {
		if d.proven(w, body(r)) {
			d.secret = ""
			reply(w, 200, obj{"name": r.PathValue("name"), "deleted": true})
		}
	})
	m.HandleFunc("POST /v1/identities/{name}/rebind", func(w http.ResponseWriter, r *http.Request) {
		if d.proven(w, body(r)) {
			reply(w, 200, obj{"name": r.PathValue("name"), "generation": 3, "destination": "https://new.example:443"})
		}
	})
}
