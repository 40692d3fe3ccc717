package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"chatelaine/internal/auditlog"
)

// cmdJournalRecord writes a record of two agents and what became of their calls:
// journalrecord DIR. Its key lies in the file key, another's in stranger.
func cmdJournalRecord(ts *testscript.TestScript, _ bool, args []string) {
	own, err := auditlog.GenerateIdentity()
	ts.Check(err)
	stranger, err := auditlog.GenerateIdentity()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("key"), []byte(own.Reveal()+"\n"), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("stranger"), []byte(stranger.Reveal()+"\n"), 0o600))
	dir, to := ts.MkAbs(args[0]), []auditlog.Recipient{own.Recipient(), stranger.Recipient()}
	if len(args) > 1 { // not sealed to the stranger
		third, err := auditlog.GenerateIdentity()
		ts.Check(err)
		to[1] = third.Recipient()
	}
	ts.Check(os.MkdirAll(filepath.Dir(dir), 0o700))
	ts.Check(auditlog.Create(dir, to))
	ts.Check(appendEvents(dir, to, journalEvents()...))
}

// appendEvents writes to a record, each event a batch.
func appendEvents(dir string, to []auditlog.Recipient, events ...auditlog.Event) error {
	l, err := auditlog.Open(auditlog.Options{Dir: dir, Recipients: to, SegmentBytes: 64 << 10})
	if err != nil {
		return err
	}
	for _, e := range events {
		if _, err := l.Append(e).Wait(context.Background()); err != nil {
			return err
		}
	}
	return l.Close()
}

type members = map[string]any

// journalEvents is a morning: one a minute from 10:00 UTC on.
func journalEvents() []auditlog.Event {
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	var out []auditlog.Event
	add := func(kind, session, call, actor, action, status string, detail members) *auditlog.Event {
		out = append(out, auditlog.Event{Type: kind, SessionID: session, CallID: call, Actor: actor, Action: action, Status: status, Detail: detail, Wall: at})
		at = at.Add(time.Minute)
		e := &out[len(out)-1]
		if action != "" {
			e.Target = "prod"
		}
		return e
	}
	const worker, other = "build-worker", "night-job"
	step := func(name, effect string) members { return members{"step": name, "effect": effect} }
	token := func() members { return members{"step": "token", "kind": auditlog.KindExchange} }
	add("session.open", "ses-1", "", worker, "", "pending", members{"executable": "/usr/bin/agent", "pid": 42, "uid": 1000, "listener": "socket"})
	yes := add("config", "ses-1", "", "uid 7", "", "", nil)
	yes.Decision, yes.Target = "session.authorize", "ses-1"
	add("intent", "ses-1", "call-ok", worker, "deploy_release", "", token())
	add("outcome", "ses-1", "call-ok", worker, "deploy_release", "IN_PROGRESS", token())
	add("intent", "ses-1", "call-ok", worker, "deploy_release", "", members{"step": "request", "effect": "create", "sentence": "Deploy 2", "input": members{"note": "a;=1+1"}})
	add("answer", "ses-1", "call-ok", worker, "deploy_release", "", members{"step": "request", "upstream_status": 202}).Body = []byte("202 OK\n")
	add("outcome", "ses-1", "call-ok", worker, "deploy_release", "IN_PROGRESS", step("request", ""))
	add("intent", "ses-1", "call-ok", worker, "deploy_release", "", step("poll", ""))
	add("outcome", "ses-1", "call-ok", worker, "deploy_release", "IN_PROGRESS", step("poll", ""))
	add("intent", "ses-1", "call-ok", worker, "deploy_release", "", step("poll", ""))
	add("outcome", "ses-1", "call-ok", worker, "deploy_release", "OK", step("poll", ""))
	for range 3 {
		add("deny", "ses-1", "", worker, "\u202e=cmd|' /C calc'!A0", "UNKNOWN_ACTION", nil).Rule = "there is no such action;\t=1+1"
	}
	add("deny", "ses-1", "call-no", worker, "deploy_release", "APPROVAL_DENIED", nil).Rule = "-2+3"
	add("session.open", "ses-2", "", other, "", "pending", nil)
	add("intent", "ses-2", "call-lost", other, "get_deployment", "", step("request", "read"))
	add("reconcile", "ses-2", "call-lost", other, "get_deployment", "OUTCOME_UNKNOWN", nil)
	add("intent", "ses-2", "call-settled", other, "deploy_release", "", step("request", "create"))
	add("outcome", "ses-2", "call-settled", other, "deploy_release", "OUTCOME_UNKNOWN", step("request", ""))
	said := add("config", "", "", "uid 7", "", "", members{"happened": true})
	said.Decision, said.Target = "call.resolve", "call-settled"
	add("session.close", "ses-1", "", worker, "", "revoked", nil)
	add("intent", "ses-2", "call-crash", other, "deploy_release", "", step("request", "create"))
	return out
}
