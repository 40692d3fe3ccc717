package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"chatelaine/internal/contracttest/upstream"
)

// realToken is the credential that must show nowhere but at the remote system.
const realToken = "tok-planted-5d1f0c7ab29e4c10"

// cmdRealDaemon starts chatelained with the shipped contracts, all targets led
// to one HTTPS server on this machine: realdaemon [FILE], with the file's text in
// its chatelaine.yaml.
func cmdRealDaemon(ts *testscript.TestScript, _ bool, args []string) {
	bin, err := programs["chatelained"]()
	ts.Check(err)
	ca, err := upstream.NewCA("scripts")
	ts.Check(err)
	leaf, err := ca.Leaf("127.0.0.1")
	ts.Check(err)
	up, err := upstream.Start(upstream.Options{Certificate: leaf, Script: fakeReleases})
	ts.Check(err)
	ts.Defer(up.Close)
	fakes.Store(ts.Getenv("RUNTIME")+" upstream", up)

	config := ts.Getenv("CHATELAINE_CONFIG")
	shipped := ts.Getenv("CONTRACTS")
	entries, err := os.ReadDir(shipped)
	ts.Check(err)
	for _, e := range entries {
		if e.IsDir() {
			ts.Check(os.CopyFS(filepath.Join(config, "contracts", e.Name()), os.DirFS(filepath.Join(shipped, e.Name()))))
		}
	}
	settings := "listen: {agent_tcp: off}\n"
	for _, name := range args {
		settings += ts.ReadFile(name)
	}
	ts.Check(os.WriteFile(filepath.Join(config, "chatelaine.yaml"), []byte(settings), 0o600))
	ts.Check(os.WriteFile(filepath.Join(config, "ca.pem"), ca.PEM(), 0o600))
	site, err := os.ReadFile(filepath.Join(shipped, "targets.yaml"))
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(config, "targets.yaml"), []byte(ledTo(string(site), up.Addr())), 0o600))

	daemon := func(args ...string) *exec.Cmd {
		cmd := exec.Command(bin, args...)
		cmd.Env = scriptEnv(ts)
		return cmd
	}
	initCmd := daemon("init", "--passes", "3", "--vault-passphrase-fd", "3", "--operator-passphrase-fd", "4", "--recovery-out", ts.MkAbs("recovery"))
	for _, name := range []string{"vaultpass", "pass"} {
		f, err := os.Open(ts.MkAbs(name))
		ts.Check(err)
		defer f.Close()
		initCmd.ExtraFiles = append(initCmd.ExtraFiles, f)
	}
	if out, err := initCmd.CombinedOutput(); err != nil {
		ts.Fatalf("init: %v\n%s", err, out)
	}
	serve := daemon("serve")
	var log strings.Builder
	serve.Stdout, serve.Stderr = &log, &log
	ts.Check(serve.Start())
	ts.Defer(func() {
		serve.Process.Signal(syscall.SIGTERM)
		serve.Wait()
		if strings.Contains(log.String(), realToken) {
			ts.Fatalf("the daemon's log holds the token")
		}
	})
	waitForSocket(ts, filepath.Join(ts.Getenv("RUNTIME"), "operator.sock"))
}

func waitForSocket(ts *testscript.TestScript, path string) {
	for end := time.Now().Add(ptyTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("unix", path); err == nil { // a socket is there a moment before anybody listens
			c.Close()
			return
		}
	}
	ts.Fatalf("the daemon never listened")
}

// ledTo replaces every address of a site file.
func ledTo(site, addr string) string {
	var out []string
	for _, line := range strings.Split(site, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "url: https://"); ok {
			base := ""
			if i := strings.IndexByte(rest, '/'); i >= 0 {
				base = rest[i:]
			}
			line = fmt.Sprintf("    url: https://%s%s\n    ca: ca.pem\n    allow: [loopback]", addr, base)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// fakeReleases answers a deployment; version 9.9.9 gets a maintenance banner.
func fakeReleases(r upstream.Request) upstream.Answer {
	body := string(r.Body)
	if strings.Contains(body, `"9.9.9"`) {
		return upstream.JSON(201, `{"maintenance":true}`)
	}
	environment, version := "test", "2.14.4"
	if strings.Contains(body, `"2.14.3"`) {
		environment, version = "production", "2.14.3"
	}
	return upstream.JSON(201, fmt.Sprintf(
		`{"deployment_id":"dep_8f2k1m9q","project_id":"shop-api","environment":%q,"version":%q,"state":"queued","observed_at":%q}`,
		environment, version, time.Now().UTC().Format(time.RFC3339)))
}

// cmdSent prints what reached the remote system.
func cmdSent(ts *testscript.TestScript, _ bool, _ []string) {
	up, _ := fakes.Load(ts.Getenv("RUNTIME") + " upstream")
	sent := up.(*upstream.Server).Requests()
	if len(sent) == 0 {
		fmt.Fprintln(ts.Stdout(), "nothing")
	}
	for _, r := range sent {
		bearer := r.Header().Get("Authorization") == "Bearer "+realToken
		fmt.Fprintf(ts.Stdout(), "%s %s credential %v\n", r.Method, r.Path, bearer)
	}
}
