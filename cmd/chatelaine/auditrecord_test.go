package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"

	"chatelaine/internal/auditlog"
)

// hostileAnswer is what a remote system may send to a person's terminal.
const hostileAnswer = "OK\nX-Note: \x1b[2Jgone\n\n{\"text\":\"\u202egnp.exe\u2066\x07\",\"bad\":\"\xff\"}\r\nlast\tline"

// cmdCallRecord writes a record with one refused call between others, and the
// keys to it: callrecord DIR. The keys lie in recovery, printed (as init shows
// it), sealed.age and heavy.age under the operator passphrase, and stranger.
func cmdCallRecord(ts *testscript.TestScript, _ bool, args []string) {
	own, err := auditlog.GenerateIdentity()
	ts.Check(err)
	recovery, err := auditlog.GenerateIdentity()
	ts.Check(err)
	stranger, err := auditlog.GenerateIdentity()
	ts.Check(err)
	write := func(name, text string) { ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600)) }
	write("recovery", recovery.Reveal()+"\n")
	write("printed", "recovery key of the record (shown once; write it down):\n"+recovery.Reveal()+"\n")
	write("stranger", stranger.Reveal()+"\n")
	write("sealed.age", sealedKey(ts, own.Reveal(), 4))
	write("heavy.age", sealedKey(ts, own.Reveal(), keyWorkFactor+1))
	write("note.age", sealedKey(ts, "milk, bread", 4))

	dir, to := ts.MkAbs(args[0]), []auditlog.Recipient{own.Recipient(), recovery.Recipient()}
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(auditlog.Create(dir, to))
	l, err := auditlog.Open(auditlog.Options{Dir: dir, Recipients: to, SegmentBytes: 64 << 10})
	ts.Check(err)
	for _, e := range callEvents() {
		_, err := l.Append(e).Wait(context.Background())
		ts.Check(err)
	}
	ts.Check(l.Close())
}

func sealedKey(ts *testscript.TestScript, text string, work int) string {
	sealed, err := sealUnderOperator(text, work)
	ts.Check(err)
	return sealed
}

// sealUnderOperator makes an age file under the operator passphrase with 2^work
// of scrypt.
func sealUnderOperator(text string, work int) (string, error) {
	r, err := age.NewScryptRecipient(fakeOperator)
	if err != nil {
		return "", err
	}
	r.SetWorkFactor(work)
	var out strings.Builder
	w, err := age.Encrypt(&out, r)
	if err != nil {
		return "", err
	}
	if _, err := w.Write([]byte(text + "\n")); err != nil {
		return "", err
	}
	err = w.Close()
	return out.String(), err
}

func callEvents() []auditlog.Event {
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	of := func(id, kind string) auditlog.Event {
		at = at.Add(time.Second)
		return auditlog.Event{EventID: "evt_" + id + kind, Type: kind, CallID: id, Actor: "build-worker", Action: "deploy_release", Target: "deploy-test", Wall: at}
	}
	intent, answer, outcome := of("call-0001", "intent"), of("call-0001", "answer"), of("call-0001", "outcome")
	intent.Detail = map[string]any{"sentence": "Deploy version 2 of \u202eapi", "input": map[string]any{"service": "api", "big": 12345678901234567}, "identity": "deploy-test-bot",
		"contract_version": "1.2.0", "contract_digest": "abcd", "attempt": 1}
	answer.Detail = map[string]any{"upstream_status": 200, "body_bytes": 60, "body_sha256": "d00d", "attempt": 1}
	answer.Body = []byte(hostileAnswer)
	outcome.Status, outcome.Rule = "INVALID_RESPONSE", "schema/required"
	outcome.Detail = map[string]any{"rejection": map[string]any{"layer": "schema", "rule": "required", "schema_path": "/required", "instance_path": "/text",
		"message": "a member is missing", "row": "created", "upstream_status": 200, "answer_event": answer.EventID}}
	resolved := of("", "config")
	resolved.Action, resolved.Actor, resolved.Decision, resolved.Target = "", "uid 7", "call.resolve", "call-0001"
	refused := of("", "config")
	refused.EventID = "evt_refused"
	refused.Action, refused.Actor, refused.Decision, refused.Target = "", "uid 8", "call.resolve-refused", "call-0001"
	return []auditlog.Event{of("call-0000", "intent"), intent, answer, outcome, of("call-0002", "intent"), resolved, refused}
}

// cmdDamage changes the last segment of a record near its end: damage DIR
func cmdDamage(ts *testscript.TestScript, _ bool, args []string) {
	names, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "seg-*"))
	ts.Check(err)
	path := names[len(names)-1]
	b, err := os.ReadFile(path)
	ts.Check(err)
	end := len(strings.TrimRight(string(b), "\x00"))
	b[end-40] ^= 1
	ts.Check(os.WriteFile(path, b, 0o600))
}

// The key's passphrase is asked without echo, and a person may mistype it.
func TestTerminalAuditKey(t *testing.T) {
	id, err := auditlog.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := sealUnderOperator(id.Reveal(), 4)
	if err != nil {
		t.Fatal(err)
	}
	key, empty := filepath.Join(t.TempDir(), "audit-key.age"), t.TempDir()
	if err := os.WriteFile(key, []byte(sealed), 0o600); err != nil {
		t.Fatal(err)
	}
	x := atTerminal(t, t.TempDir(), nil, nil, "audit", "show", "call-0001", "--key", key, "--audit", empty)
	x.expect("operator passphrase: ")
	x.types("not the passphrase\n")
	x.expect("the passphrase does not open it; try again")
	x.expect("operator passphrase: ")
	x.types(fakeOperator + "\n")
	x.expect("there is no record here")
	x.ends(2)
	x.hides("not the passphrase", fakeOperator, id.Reveal())
}

// No line of unchecked bytes steers the terminal that shows it, whatever it holds.
func FuzzEscapeRaw(f *testing.F) {
	for _, s := range []string{"", "plain", hostileAnswer, "\u061c\u200e\u2028\u00a0\U000e0041", "\xc3\x28\x9b31m"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got := escapeRaw(line)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is no text", got)
		}
		for _, r := range got {
			if hidden(r) || !unicode.IsPrint(r) {
				t.Fatalf("%q shows %U", got, r)
			}
		}
	})
}

// JSON with its steering characters escaped is the same value.
func TestVisibleJSON(t *testing.T) {
	for _, s := range []string{"plain", "\u202egnp.exe", "a\u2028b", "\u007f\u0085", "tag \U000e0041", "line\nbreak"} {
		in := jsonOf(s)
		out := visibleJSON(string(in))
		var back string
		if err := json.Unmarshal([]byte(out), &back); err != nil || back != s {
			t.Errorf("%q became %s, read back as %q, %v", s, out, back, err)
		}
		if strings.ContainsFunc(out, hidden) {
			t.Errorf("%s still steers", out)
		}
	}
}
