package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
)

const jobContractFile = "c/contracts/start_job/contract.yaml"

// brokenFiles is what an editor, a half-done copy or an attacker with a pen can
// leave in the configuration folder.
var brokenFiles = map[string]func(h *home){
	"a cut contract":       func(h *home) { h.write(jobContractFile, "contract: v1\naction: start_job\nversion: 1") },
	"an empty contract":    func(h *home) { h.write(jobContractFile, "") },
	"bytes":                func(h *home) { h.write(jobContractFile, "\x00\xff\xfe\x1b[2J\x00") },
	"aliases that explode": func(h *home) { h.write(jobContractFile, "a: &a [1,1]\nb: &b [*a,*a]\nc: [*b,*b]\n") },
	"depth":                func(h *home) { h.write(jobContractFile, strings.Repeat("[", 100_000)) },
	"length":               func(h *home) { h.write(jobContractFile, "contract: "+strings.Repeat("v", 8<<20)) },
	"many mistakes": func(h *home) {
		var b strings.Builder
		for i := range 2_000 {
			fmt.Fprintf(&b, "key%d: 1\n", i)
		}
		h.write(jobContractFile, b.String())
	},
	"a pattern that never ends": func(h *home) {
		h.change(jobContractFile, "pattern: '", "pattern: '^(a|a)*(a{0,1000}){0,1000}$")
	},
	"a folder for a file": func(h *home) {
		path := filepath.Join(h.dir, jobContractFile)
		if err := os.Remove(path); err != nil {
			h.t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			h.t.Fatal(err)
		}
	},
	"no contract in a folder": func(h *home) { h.write("c/contracts/empty_one/notes.txt", "nothing") },
	"a fifo": func(h *home) {
		h.write("c/contracts/empty_one/x", "")
		fifo(h.t, filepath.Join(h.dir, "c/contracts/empty_one/contract.yaml"))
	},
	"no site file":       func(h *home) { remove(h, "c/targets.yaml") },
	"no contracts":       func(h *home) { remove(h, "c/contracts") },
	"an empty site file": func(h *home) { h.write("c/targets.yaml", "") },
	"a cut site file":    func(h *home) { h.write("c/targets.yaml", "targets:\n  runner: {url: 'https://") },
	"a site that loops":  func(h *home) { h.write("c/targets.yaml", "targets: &x {y: *x}\n") },
}

func remove(h *home, name string) {
	h.t.Helper()
	if err := os.RemoveAll(filepath.Join(h.dir, name)); err != nil {
		h.t.Fatal(err)
	}
}

// mend puts good files back; status has nothing to say then.
func (h *home) mend(op *client.Operator, good string) {
	h.t.Helper()
	remove(h, "c")
	if err := os.CopyFS(h.places.Config, os.DirFS(good)); err != nil {
		h.t.Fatal(err)
	}
	if _, err := op.Challenge(h.ctx(), client.OpReload, "", nil); err != nil {
		h.t.Errorf("the good files: %v", err)
	}
	if s, err := op.Status(h.ctx()); err != nil || len(s.Contracts.Problems) != 0 {
		h.t.Errorf("status still says %.300v, %v", s.Contracts, err)
	}
}

// Whatever a reload finds, the daemon goes on with the set it had, and says why:
// to who asked, in status, in the log and in a metric. Once the files are good
// again, so is status.
func TestNoFileTakesTheDaemonDown(t *testing.T) {
	t.Parallel()
	r := newRunner()
	r.set(func() { r.run = upstream.JSON(200, `{"state":"done","run":"r1"}`) })
	h, a := jobHome(t, r, "session")
	op := h.operator()
	defer op.Close()
	good := t.TempDir()
	if err := os.CopyFS(good, os.DirFS(h.places.Config)); err != nil {
		t.Fatal(err)
	}
	before, err := op.Contracts(h.ctx())
	if err != nil {
		t.Fatal(err)
	}
	pid, refused := h.proc.Process.Pid, 0
	for name, spoil := range brokenFiles {
		t.Run(name, func(t *testing.T) {
			h.t = t
			spoil(h)
			_, err := op.Challenge(h.ctx(), client.OpReload, "", nil)
			if client.CodeOf(err) != "INVALID_ARGUMENT" || !strings.Contains(fmt.Sprint(err), "the old set stays in force") {
				t.Errorf("the reload answered %.300v", err)
			}
			s, err := op.Status(h.ctx())
			if err != nil || s.Contracts.Loaded != 1 || len(s.Contracts.Problems) == 0 {
				t.Errorf("status says %.300v, %v", s.Contracts, err)
			}
			refused++
			if _, m := rawGet(t, filepath.Join(h.places.Runtime, "metrics.sock"), "/metrics"); !strings.Contains(m, fmt.Sprintf("chatelaine_reloads_total{result=\"refused\"} %d\n", refused)) {
				t.Error("the metric does not count it")
			}
			if now, err := op.Contracts(h.ctx()); err != nil || now.Digest != before.Digest {
				t.Errorf("another set is in force: %v", err)
			}
			if _, err := a.Action(h.ctx(), "start_job"); err != nil {
				t.Errorf("the old set does not serve: %v", err)
			}
			h.mend(op, good)
		})
	}
	h.t = t
	if h.proc.Process.Pid != pid {
		t.Error("it is another daemon")
	}
	h.log.waitFor("the old set stays")
	e := h.call(a, "start_job", "after-0001", jobInput)
	for ; err == nil && code(e) == "IN_PROGRESS"; e, err = a.Result(h.ctx(), "after-0001", client.MaxWait) {
	}
	if err != nil || !e.OK {
		t.Errorf("a call after all that: %v %s", err, e.Raw)
	}
	if err := h.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
