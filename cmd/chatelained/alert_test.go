package main_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// upstreamMarker is in every answer of the drifted vendor and must reach nobody
// but the one who opens the record.
const upstreamMarker = "marker-6b1e-of-the-vendor"

// A vendor whose answers no longer fit: the owner's program hears of it once,
// without a byte of the answer; the operator sees it counted; the record holds
// why, under which contract, and where the bytes are.
func TestDriftingVendor(t *testing.T) {
	t.Parallel()
	h := rig(t, func(upstream.Request) upstream.Answer {
		return upstream.JSON(200, `{"`+upstreamMarker+`":"`+upstreamMarker+`"}`)
	})
	told := filepath.Join(h.dir, "told")
	h.write("c/chatelaine.yaml", "listen: {agent_tcp: off}\nalert: [sh, -c, 'cat >> "+told+"; exit 3']\n")
	h.open()
	h.put("jobs-reader")
	a := h.agent("build-worker")
	for _, id := range []string{"drift-0001", "drift-0002", "drift-0003"} {
		if e := h.call(a, "get_job_run", id, jobRun); code(e) != "INVALID_RESPONSE" {
			t.Fatalf("%s answered %s", id, e.Raw)
		}
	}

	op := h.operator()
	defer op.Close()
	if _, err := op.Rejections(h.ctx()); err == nil {
		t.Error("the counts were shown without a read session")
	}
	if err := patiently(func() error { return op.OpenRead(h.ctx(), h.proof(op, client.OpRead, "")) }); err != nil {
		t.Fatal(err)
	}
	list, err := op.Rejections(h.ctx())
	if err != nil || len(list) != 1 {
		t.Fatalf("rejections: %+v, %v", list, err)
	}
	x := list[0]
	if x.Action != "get_job_run" || x.Count != 3 || x.RequestID != "drift-0003" || x.Version == "" || x.Owner == "" || time.Since(x.Last) > time.Hour {
		t.Errorf("rejections: %+v", x)
	}

	line := waitFor(t, told)
	var alert map[string]any
	if err := json.Unmarshal(line, &alert); err != nil || len(alert) != 8 {
		t.Fatalf("the program was told %q: %v", line, err)
	}
	layer, _ := alert["layer"].(string)
	rule, _ := alert["rule"].(string)
	if alert["action"] != x.Action || alert["version"] != x.Version || alert["owner"] != x.Owner || layer+"/"+rule != x.Rule ||
		alert["request_id"] != "drift-0001" || alert["count"] != 1.0 {
		t.Errorf("the program was told %s; the counts say %+v", line, x)
	}
	if strings.Contains(string(line), upstreamMarker) || strings.Contains(string(line), "bluebird") {
		t.Errorf("the alert holds a byte of the answer or an input: %s", line)
	}
	if strings.Contains(string(h.log.bytes()), upstreamMarker) {
		t.Error("the log holds a byte of the answer")
	}

	h.log.waitFor("alert failed")
	if err := h.stop(); err != nil { // which waits for the record
		t.Error(err)
	}
	if again := waitFor(t, told); string(again) != string(line) {
		t.Errorf("the program was told more than once: %q", again)
	}
	checkRejectionRecord(t, h, x)
}

// checkRejectionRecord opens the record with the recovery key.
func checkRejectionRecord(t *testing.T, h *home, x client.Rejection) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "recovery.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := auditlog.ParseIdentity(string(text))
	if err != nil {
		t.Fatal(err)
	}
	answers, refused := map[string]auditlog.Event{}, 0
	err = auditlog.Read(h.places.Record(), key, func(_ uint64, e auditlog.Event) error {
		switch e.Type {
		case auditlog.TypeAnswer:
			answers[e.EventID] = e
		case auditlog.TypeOutcome:
			refused++
			r, _ := e.Detail["rejection"].(map[string]any)
			id, _ := r["answer_event"].(string)
			sealed, ok := answers[id]
			if !ok || sealed.CallID != e.CallID || !strings.Contains(string(sealed.Body), upstreamMarker) || r["body_sha256"] == nil || r["body_sha256"] != sealed.Detail["body_sha256"] {
				t.Errorf("%s: the rejection %v names no answer that holds the bytes", e.CallID, r)
			}
			digest, _ := r["contract_digest"].(string)
			if raw, err := hex.DecodeString(digest); err != nil || len(raw) != 32 || r["contract_version"] != x.Version {
				t.Errorf("%s: the rejection names the contract as %v %q", e.CallID, r["contract_version"], digest)
			}
			if _, ok := r["row"]; !ok || r["layer"] == "" || r["rule"] == "" {
				t.Errorf("%s: the rejection is %v", e.CallID, r)
			}
		}
		return nil
	})
	if err != nil || refused != 3 {
		t.Errorf("the record tells of %d refused answers, %v", refused, err)
	}
}

// waitFor reads a file that another program is about to write whole.
func waitFor(t *testing.T, path string) []byte {
	t.Helper()
	var b []byte
	testkit.Until(t, "a line in "+path, func() bool {
		b, _ = os.ReadFile(path)
		return len(b) > 0 && b[len(b)-1] == '\n'
	})
	return b
}

// An answer that echoed the credential has no digest of its bytes anywhere: it
// would let a guess of the credential be checked.
func TestEchoHasNoDigest(t *testing.T) {
	t.Parallel()
	h := rig(t, func(upstream.Request) upstream.Answer { return upstream.JSON(200, `{"echo":"`+planted+`"}`) })
	h.open()
	h.put("jobs-reader")
	if e := h.call(h.agent("build-worker"), "get_job_run", "echo-0001", jobRun); code(e) != "INVALID_RESPONSE" {
		t.Fatalf("answered %s", e.Raw)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(h.dir, "recovery.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := auditlog.ParseIdentity(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var answer string
	err = auditlog.Read(h.places.Record(), key, func(_ uint64, e auditlog.Event) error {
		all := marshal(t, e.Detail) + string(e.Body)
		if strings.Contains(all, planted) || strings.Contains(all, "body_sha256") {
			t.Errorf("the %s holds the credential or a digest of it: %s", e.Type, all)
		}
		switch e.Type {
		case auditlog.TypeAnswer:
			answer = e.EventID
		case auditlog.TypeOutcome:
			r, _ := e.Detail["rejection"].(map[string]any)
			if r["layer"] != "echo" || answer == "" || r["answer_event"] != answer {
				t.Errorf("the rejection is %v, the answer's event %q", r, answer)
			}
			answer = "seen"
		}
		return nil
	})
	if err != nil || answer != "seen" {
		t.Errorf("the record: %v, %q", err, answer)
	}
}
