package main

import (
	"encoding/base64"
	"net/http"
	"sort"
	"time"

	"chatelaine/internal/client"
)

func (d *fakeDaemon) operatorRoutes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/status", d.status)
	m.HandleFunc("POST /v1/challenges", d.challenge)
	m.HandleFunc("POST /v1/approvals/{id}/challenge", d.challenge)
	d.cardRoutes(m)
	d.sessionRoutes(m)
	d.callRoutes(m)
	d.vaultRoutes(m)
	m.HandleFunc("GET /v1/contracts", func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, fakeContracts) })
	m.HandleFunc("POST /v1/reload", func(w http.ResponseWriter, r *http.Request) {
		if d.options["reload"] == "narrow" || d.proven(w, body(r)) {
			reply(w, 200, fakeContracts)
		}
	})
	m.HandleFunc("POST /v1/explain", d.explain)
	m.HandleFunc("POST /v1/operator/passphrase", func(w http.ResponseWriter, r *http.Request) {
		b := body(r)
		if !d.proven(w, b) {
			return
		}
		if d.options["vaultpass"] == "same" {
			opError(w, 400, "INVALID_ARGUMENT", "The request is not well-formed.", "the operator passphrase and the vault's must differ", 0)
			return
		}
		s, _ := base64.StdEncoding.DecodeString(b["secret"].(string))
		d.secret = string(s)
		reply(w, 200, obj{"changed": true})
	})
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		opError(w, 404, "NOT_FOUND", "There is nothing of that name.", "no such route", 0)
	})
	return m
}

var fakeContracts = obj{"digest": "f00dfeedf00dfeedf00d", "contracts": []obj{{
	"action": "deploy_release", "version": "1.2.0", "effect": "change", "owner": "release team",
	"summary": "Deploy a release", "targets": []string{"deploy-prod", "deploy-test"}, "digest": "abcdef0123456789abcdef",
}}}

func (d *fakeDaemon) status(w http.ResponseWriter, _ *http.Request) {
	state := "sealed"
	if d.open {
		state = "open"
	}
	unattended := []obj{}
	if d.options["slot"] == "keychain" {
		unattended = append(unattended, obj{"id": "0123456789abcdef", "kind": "keychain", "unattended": true, "opens": true, "detail": "convenience: any process of this user can read it\u202e"})
	}
	damaged := []string{}
	if name := d.options["damaged"]; name != "" {
		damaged = append(damaged, name)
	}
	looks := []string{}
	if text := d.options["looks"]; text != "" {
		looks = append(looks, text+"\u202e")
	}
	cards, pending := 0, 0
	for _, c := range d.cards {
		if c.State == "open" {
			cards++
		}
	}
	for _, s := range d.sessions {
		if s.state == "pending" {
			pending++
		}
	}
	reply(w, 200, obj{"version": "0.1.0", "mode": "same-user", "daemon_id": "dmn_1", "started_at": "2026-01-05T10:00:00Z",
		"vault": obj{"state": state, "reason": d.options["reason"], "since": "2026-01-05T10:00:00Z", "backend": "file", "rollback": "not detectable", "identities": 1,
			"auto_lock": "after a sleep of the machine", "unattended": unattended},
		"identities": obj{"problems": looks},
		"contracts":  obj{"loaded": 1, "digest": "f00d", "problems": []string{}}, "record": obj{"state": "writing", "next_seq": 12, "epoch": 3},
		"approvals": obj{"open": cards}, "sessions": obj{"pending": pending, "authorised": 0}, "calls": obj{"running": 0, "unresolved": 0, "damaged": damaged},
		"listeners": []obj{{"name": "agent", "address": "agent.sock", "state": "listening"}}, "later_member": true})
}

func (d *fakeDaemon) cardRoutes(m *http.ServeMux) {
	find := func(w http.ResponseWriter, r *http.Request) *client.Card {
		c := d.cards[r.PathValue("id")]
		if c == nil {
			opError(w, 404, "NOT_FOUND", "There is nothing of that name.", "no such card", 0)
		}
		return c
	}
	m.HandleFunc("GET /v1/approvals", func(w http.ResponseWriter, _ *http.Request) {
		list := []client.Card{}
		for _, c := range d.cards {
			list = append(list, *c)
		}
		sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
		reply(w, 200, obj{"approvals": list})
	})
	m.HandleFunc("GET /v1/approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		if c := find(w, r); c != nil {
			reply(w, 200, c)
		}
	})
	decide := func(word string, proof bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			c := find(w, r)
			if c == nil || (proof && !d.proven(w, body(r))) {
				return
			}
			if c.State != "open" {
				opError(w, 409, "ALREADY_DECIDED", "This card was decided or closed before.", "", 0)
				return
			}
			c.State = word
			reply(w, 200, c)
		}
	}
	m.HandleFunc("POST /v1/approvals/{id}/approve", decide("approved", true))
	m.HandleFunc("POST /v1/approvals/{id}/deny", decide("denied", false))
}

func (d *fakeDaemon) sessionRoutes(m *http.ServeMux) {
	m.HandleFunc("GET /v1/sessions", func(w http.ResponseWriter, _ *http.Request) {
		list := []client.Session{}
		for _, s := range d.sessions {
			list = append(list, client.Session{ID: s.id, Name: s.name, State: s.state, UID: 0, Listener: "socket", Process: "/usr/bin/node",
				PairingCode: s.code, OpenedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour), Conflict: d.options["conflict"] == "yes",
				Permits: []client.Permit{{Action: "deploy_release", Sentence: "Deploy version {version} of {service}", Target: "deploy-test", Identity: "deploy-test-bot"}}})
		}
		sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
		reply(w, 200, obj{"sessions": list})
	})
	set := func(word string, proof bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if proof && !d.proven(w, body(r)) {
				return
			}
			for _, s := range d.sessions {
				if s.id == r.PathValue("id") {
					s.state = word
				}
			}
			reply(w, 200, obj{})
		}
	}
	m.HandleFunc("POST /v1/sessions/{id}/authorize", set("authorised", true))
	m.HandleFunc("POST /v1/sessions/{id}/revoke", set("revoked", false))
}

func (d *fakeDaemon) callRoutes(m *http.ServeMux) {
	one := obj{"request_id": "act_lost0001", "action": "deploy_release", "agent": "cli-test", "uid": 0, "state": "unresolved", "code": "OUTCOME_UNKNOWN",
		"sentence": "Deploy version 2 of api", "claimed_at": "2026-01-05T10:00:00Z"}
	reads := map[string]bool{} // whether a read session was opened
	m.HandleFunc("GET /v1/calls", func(w http.ResponseWriter, r *http.Request) {
		reply(w, 200, obj{"calls": []obj{one}})
	})
	m.HandleFunc("POST /v1/reads", func(w http.ResponseWriter, r *http.Request) {
		if d.proven(w, body(r)) {
			reads["open"] = true
			reply(w, 200, obj{"expires_at": time.Now().Add(10 * time.Minute)})
		}
	})
	m.HandleFunc("GET /v1/calls/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != "act_lost0001" {
			opError(w, 404, "NOT_FOUND", "There is nothing of that name.", "no call of this id", 0)
			return
		}
		if !reads["open"] {
			reply(w, 200, one)
			return
		}
		more := obj{"detail": obj{"input": obj{"service": "api"}, "target": "deploy-prod", "rejection": obj{"layer": "schema", "message": "extra member"}, "steps": []obj{
			{"step": "head", "sends": 1, "endpoint": "GET https://deploy.example:443/heads/api", "upstream_status": 200, "status": "IN_PROGRESS"},
			{"step": "request", "sends": 2, "endpoint": "POST https://deploy.example:443/jobs\u202e", "status": "INVALID_RESPONSE", "rule": "schema/required"},
		}}}
		for k, v := range one {
			more[k] = v
		}
		reply(w, 200, more)
	})
	m.HandleFunc("GET /v1/rejections", func(w http.ResponseWriter, _ *http.Request) {
		if !reads["open"] {
			opError(w, 403, "PROOF_REQUIRED", "This needs a proof by the operator.", "open a read session", 0)
			return
		}
		list := []obj{}
		if d.options["rejections"] == "some" {
			list = append(list, obj{"action": "deploy_release", "rule": "schema/required", "count": 7, "last": "2026-01-05T10:00:00Z", "version": "1.2.0", "owner": "release\u202eteam", "request_id": "act_lost0001"},
				obj{"action": "old_action", "rule": "parse/bom", "count": 1, "last": "2026-01-05T09:00:00Z", "version": "", "owner": "", "request_id": "act_lost0002"})
		}
		reply(w, 200, obj{"rejections": list})
	})
	m.HandleFunc("POST /v1/calls/{id}/resolve", func(w http.ResponseWriter, r *http.Request) {
		if d.proven(w, body(r)) {
			reply(w, 200, one)
		}
	})
}

func (d *fakeDaemon) vaultRoutes(m *http.ServeMux) {
	state := func() obj {
		word := "sealed"
		if d.open {
			word = "open"
		}
		return obj{"state": word, "since": time.Now(), "backend": "file", "rollback": "not detectable", "identities": 1}
	}
	m.HandleFunc("POST /v1/vault/unlock", func(w http.ResponseWriter, r *http.Request) {
		if d.proofs++; d.proofs == 1 && d.options["first"] == "soon" {
			opError(w, 429, "PROOF_TOO_SOON", "Too many tries; wait a little.", "", 1)
			return
		}
		if body(r)["passphrase"] != fakeVault {
			opError(w, 403, "PROOF_REFUSED", "The passphrase is wrong.", "", 0)
			return
		}
		d.open = true
		reply(w, 200, state())
	})
	m.HandleFunc("POST /v1/vault/lock", func(w http.ResponseWriter, _ *http.Request) { d.open = false; reply(w, 200, state()) })
	d.identityRoutes(m)
}

func (d *fakeDaemon) explain(w http.ResponseWriter, r *http.Request) {
	in, _ := body(r)["input"].(obj)
	x := obj{"would": "ask", "steps": []obj{{"step": "vault", "ok": true, "detail": "open"}}, "sentence": "Deploy version 2 of api", "target": "deploy-prod", "identity": "deploy-prod-bot"}
	if in["version"] == "stop" {
		x = obj{"would": "refuse", "steps": []obj{{"step": "vault", "ok": false, "detail": "VAULT_LOCKED"}},
			"stopped_by": obj{"step": "vault", "code": "VAULT_LOCKED", "reason": "the vault is sealed"}}
	}
	reply(w, 200, x)
}
