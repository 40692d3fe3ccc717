package main_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// A hostile environment changes nothing: not where calls go, not whom they
// trust, not what the program loads.
func TestHostileEnvironment(t *testing.T) {
	t.Parallel()
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	var contacts atomic.Int64
	go func() {
		for {
			c, err := proxy.Accept()
			if err != nil {
				return
			}
			contacts.Add(1)
			_ = c.Close()
		}
	}()
	ca, other := testkit.CA(t), testkit.CA(t)
	strange := testkit.HTTPS(t, other, testkit.Always(run()))
	h := newHome(t, testkit.HTTPS(t, ca, goodDeploy), testkit.CAFile(t, ca))
	address := "http://" + proxy.Addr().String()
	h.write("evil/hosts", "127.0.0.1 deploy.test.example\n")
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		h.env = append(h.env, name+"="+address)
	}
	// Switches that the toolchain has removed end the program before main.
	h.env = append(h.env,
		"NO_PROXY=", "SSL_CERT_FILE="+testkit.CAFile(t, other), "SSL_CERT_DIR="+filepath.Join(h.dir, "evil"),
		"GODEBUG=tlsmaxrsasize=1,x509usefallbackroots=1,netdns=cgo,http2client=0,x509negativeserial=1,execerrdot=0",
		"SSLKEYLOGFILE="+filepath.Join(h.dir, "keys"), "LD_PRELOAD="+filepath.Join(h.dir, "evil.so"), "LD_LIBRARY_PATH="+h.dir,
		"RES_OPTIONS=ndots:9", "LOCALDOMAIN=evil.example", "HOSTALIASES="+filepath.Join(h.dir, "evil/hosts"), "GOTRACEBACK=crash", "GOCOVERDIR=")
	// The one target that trusts the system's roots, which the environment names.
	site := h.site(testkit.CAFile(t, ca))
	site = strings.Replace(site, "https://"+h.up.Addr()+"/api\n    ca: ", "https://"+strange.Addr()+"/api\n    # ca: ", 1)
	h.write("c/targets.yaml", site)
	h.change("c/contracts/review_status/contract.yaml", "retry: {attempts: 2, within: 15s, codes: [UPSTREAM_UNAVAILABLE, REMOTE_RATE_LIMITED]}", "")
	h.open()
	h.put("deploy-test-bot", "review-reader")
	a := h.agent("build-worker")
	if e := h.call(a, "deploy_release", "", deployVersion("1.0.0")); !e.OK {
		t.Errorf("answered %s", e.Raw)
	}
	if e := h.call(a, "review_status", "", `{"change_id":"CR-1"}`); e.OK || len(strange.Requests()) != 0 {
		t.Errorf("an authority of the environment is trusted: %s", e.Raw)
	}
	if n := contacts.Load(); n != 0 {
		t.Errorf("the proxy was contacted %d times", n)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "keys")); err == nil {
		t.Error("TLS keys were written")
	}
	log := string(h.log.bytes())
	for _, name := range []string{"HTTPS_PROXY", "SSL_CERT_FILE", "GODEBUG", "LD_PRELOAD"} {
		if !strings.Contains(log, "name="+name) {
			t.Errorf("the log does not say that %s is ignored", name)
		}
	}
	if strings.Contains(log, proxy.Addr().String()) {
		t.Error("the log shows a value of the environment")
	}
}

// The notify program gets the sentence on its standard input and nothing of the
// agent's in its arguments; one that hangs, fails or is not there hurts nothing.
func TestNotify(t *testing.T) {
	t.Parallel()
	h := rig(t, func(r upstream.Request) upstream.Answer { return release("production", versionOf(r)) })
	told := filepath.Join(h.dir, "told")
	script := filepath.Join(h.dir, "notify.sh")
	h.write("notify.sh", "#!/bin/sh\n{ echo \"$#:$1\"; cat; env; } > \"$1.new\"; mv \"$1.new\" \"$1\"\necho loud output\nexit 3\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	ask := func(id string) {
		t.Helper()
		a := h.agent("build-worker")
		if e := h.call(a, "deploy_release", id, deployProd); code(e) != "APPROVAL_REQUIRED" {
			t.Fatalf("answered %s", e.Raw)
		}
		h.approve()
		if e, err := h.result(a, id); err != nil || !e.OK {
			t.Errorf("after the approval: %v %s", err, e.Raw)
		}
	}
	settings := func(notify string) {
		h.write("c/chatelaine.yaml", "listen: {agent_tcp: off}\nnotify: "+notify+"\n")
	}

	settings("[" + script + ", " + told + "]")
	h.env = []string{"DISPLAY=:7", "SECRET_OF_THE_SHELL=" + planted}
	h.open()
	h.put("deploy-prod-bot")
	ask("tell-0001")
	var got []byte
	testkit.Until(t, "what the program was told", func() bool {
		got, _ = os.ReadFile(told)
		return len(got) > 0
	})
	lines := strings.Split(string(got), "\n")
	if len(lines) < 3 || lines[0] != "1:"+told || lines[1] != "Deploy version 2.14.3 of api to production" {
		t.Errorf("the program was told %q", got)
	}
	if !strings.Contains(string(got), "DISPLAY=:7") || strings.Contains(string(got), planted) || strings.Contains(string(got), "SECRET_OF") {
		t.Errorf("its environment is %q", got)
	}
	if strings.Contains(string(h.log.bytes()), "loud output") {
		t.Error("its output is in the log")
	}

	for id, notify := range map[string]string{
		"hang-0001": "[sh, -c, 'sleep 60 & sleep 60']",
		"gone-0001": "[/no/such/program]",
		"deaf-0001": "['true']",
	} {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
		settings(notify)
		h.open()
		input := strings.Replace(deployProd, "2.14.3", "2.15."+map[string]string{"hang-0001": "1", "gone-0001": "2", "deaf-0001": "3"}[id], 1)
		a := h.agent("build-worker")
		before := len(h.log.bytes())
		if e := h.call(a, "deploy_release", id, input); code(e) != "APPROVAL_REQUIRED" {
			t.Errorf("%s answered %s", notify, e.Raw)
		}
		// The daemon ends a program that hangs, and logs it. An answer that came
		// before that has not waited for the program.
		if id == "hang-0001" && strings.Contains(string(h.log.bytes()[before:]), "notify failed") {
			t.Error("the call waited for a program that hangs")
		}
		h.approve()
		if e, err := h.result(a, id); err != nil || !e.OK {
			t.Errorf("%s: %v %s", notify, err, e.Raw)
		}
	}
	h.log.waitFor("notify failed")
}
