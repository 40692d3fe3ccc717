package main_test

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
)

// shot is a kill -9 that is due some time after the upstream was asked.
type shot struct {
	proc   *os.Process
	after  time.Duration
	latch  bool // the record refuses what is written from then on
	sees   bool // kill when the daemon has seen that, instead of after a time
	before int  // what the log held when the shot was loaded
	over   chan struct{}
	answer upstream.Answer
}

func (s shot) fire(h *home) {
	if !s.sees {
		time.Sleep(s.after)
		_ = s.proc.Kill()
		return
	}
	for !bytes.Contains(h.log.bytes()[s.before:], []byte("outcome not recorded")) {
		select {
		case <-s.over:
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
	_ = s.proc.Kill()
}

// shotOf sweeps the ways and the moments.
func shotOf(h *home, i int) shot {
	s := shot{proc: h.proc.Process, after: time.Duration(i%24) * 400 * time.Microsecond, before: len(h.log.bytes()), over: make(chan struct{})}
	switch i % 3 {
	case 0:
		s.after += 3 * time.Millisecond
	case 1:
		s.latch, s.sees = true, true
	case 2:
		s.latch = true
	}
	return s
}

// spoil makes the record's next write fail: someone else cut the file that it
// appends to.
func (h *home) spoil() error {
	files, err := filepath.Glob(filepath.Join(h.places.State, "audit", "seg-*.alog"))
	if err != nil {
		return err
	}
	newest := files[len(files)-1] // the names are in the order of their sequences
	info, err := os.Stat(newest)
	if err != nil {
		return err
	}
	return os.Truncate(newest, info.Size()-1)
}

// outcomes says which calls have a success in the record.
func (h *home) outcomes() map[string]bool {
	h.t.Helper()
	out := map[string]bool{}
	err := auditlog.Read(filepath.Join(h.places.State, "audit"), h.recovery(), func(_ uint64, e auditlog.Event) error {
		if e.Type == auditlog.TypeOutcome && e.Status == "OK" {
			out[e.CallID] = true
		}
		return nil
	})
	if err != nil {
		h.t.Fatalf("read the record: %v", err)
	}
	return out
}

// Kill within milliseconds of the answer, while the record and the ledger are
// being written side by side, with a record that takes the outcome and with one
// that refuses it. Whatever the two kept: an id answers with data only if the
// record holds that outcome, and what it does not hold is never sent again.
func TestKillAfterAnswerNotRecorded(t *testing.T) {
	t.Parallel()
	rounds := 6
	if s := os.Getenv(killsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s=%q is not a number", killsEnv, s)
		}
		rounds = n
	}
	shots := make(chan shot, 1)
	up := &switchable{}
	h := rig(t, up.script)
	h.plain = true
	up.set(func(upstream.Request) upstream.Answer {
		s, ok := <-shots, true
		if s.latch {
			ok = h.spoil() == nil
		}
		go s.fire(h)
		if !ok {
			return upstream.JSON(500, `{}`)
		}
		return s.answer
	})
	h.open()
	h.put("deploy-test-bot")
	a := h.agent("build-worker")
	met := map[string]int{}
	for i := range rounds {
		c := lostCall{id: fmt.Sprintf("lost-%04d", i), action: "read_stock", input: fmt.Sprintf(`{"sku":"AB-%d"}`, i)}
		s := shotOf(h, i)
		s.answer = upstream.JSON(200, `{"ok":true,"data":{"qty":4}}`)
		if i%2 == 1 {
			version := fmt.Sprintf("1.0.%d", i)
			c.action, c.input, c.change = "deploy_release", deployVersion(version), true
			s.answer = release("test", version)
		}
		shots <- s
		live, err := a.Call(h.ctx(), c.action, client.CallRequest{Input: jsontext.Value(c.input), RequestID: c.id})
		h.kill()
		close(s.over)
		for range i % 3 { // starts that end before anybody unlocks
			h.start()
			h.kill()
		}
		a = h.again("build-worker")
		met[h.afterLoss(a, c, err == nil && live.OK)]++
	}
	t.Logf("%d kills, answers after them: %v", rounds, met)
	if err := h.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if r := auditlog.Verify(filepath.Join(h.places.State, "audit")); r.ExitCode() != 0 {
		t.Errorf("the record after %d kills:\n%s", rounds, r.Text())
	}
}

type lostCall struct {
	id, action, input string
	change            bool
}

// afterLoss holds what the id answers after a kill against the record, and says
// what it was.
func (h *home) afterLoss(a *client.Agent, c lostCall, told bool) string {
	t := h.t
	t.Helper()
	sent := len(h.up.Requests())
	e, err := a.Result(h.ctx(), c.id, 0)
	if err != nil {
		t.Fatalf("%s: %v", c.id, err)
	}
	in := h.outcomes()[c.id]
	switch {
	case e.OK && !in:
		t.Errorf("%s answers with data that is not in the record: %s", c.id, e.Raw)
	case told && !in:
		t.Errorf("%s was answered with data that is not in the record", c.id)
	case told && !e.OK:
		t.Errorf("%s was answered with data, and then %s", c.id, e.Raw)
	case !e.OK && code(e) != "OUTCOME_UNKNOWN":
		t.Errorf("%s answered %s", c.id, e.Raw)
	}
	ids := []string{c.id}
	if c.change && !e.OK {
		ids = append(ids, c.id+"-again", "")
	}
	for _, id := range ids {
		again := h.call(a, c.action, id, c.input)
		if code(again) != code(e) || again.RequestID != c.id {
			t.Errorf("%s asked as %q: %s", c.id, id, again.Raw)
		}
	}
	if n := len(h.up.Requests()); n != sent {
		t.Errorf("%s was sent again", c.id)
	}
	return code(e)
}
