package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// bare is a home with nothing in it but an empty folder.
func bare(t testing.TB) *home {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cht")
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, dir: dir, log: newLog(t)}
	h.places = client.Places{Config: filepath.Join(dir, "c"), State: filepath.Join(dir, "s"), Runtime: filepath.Join(dir, "r")}
	t.Cleanup(func() { h.kill(); h.noRace(); _ = os.RemoveAll(dir) })
	return h
}

// ended is how one run of the program ended.
type ended struct {
	code     int
	out, err string
}

// run runs the program to its end.
func (h *home) run(args []string, fds ...string) ended {
	h.t.Helper()
	return finish(h.t, h.command(args, fds...))
}

// runLimit ends a run that should have ended by itself.
const runLimit = testkit.Patience

func finish(t testing.TB, cmd *exec.Cmd) ended {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A daemon that starts where it should refuse would never end.
	limit := time.AfterFunc(runLimit, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// want fails the test unless the run ended with code and a text that holds all.
func (e ended) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if e.code != code {
		t.Errorf("exit %d, want %d; it said\n%s", e.code, code, e.err)
	}
	for _, s := range texts {
		if !strings.Contains(e.err, s) {
			t.Errorf("it does not say %q:\n%s", s, e.err)
		}
	}
	for _, bad := range []string{vaultPass, operatorPass, "goroutine ", "panic:"} {
		if strings.Contains(e.err+e.out, bad) {
			t.Errorf("it says %q:\n%s%s", bad, e.err, e.out)
		}
	}
}

// files lists what lies under a folder.
func files(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		out = append(out, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func TestCommandLineMistakes(t *testing.T) {
	t.Parallel()
	h := bare(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--no-such-flag"}, "unknown flag"},
		{[]string{"serve", "now"}, "takes no arguments"},
		{[]string{"init", "there"}, "takes no arguments"},
		{[]string{"config", "x"}, "takes no arguments"},
		{[]string{"adopt", "x"}, "takes no arguments"},
		{[]string{"version", "x"}, "takes no arguments"},
		{[]string{"sevre"}, "sevre"},
		{[]string{"init", "--vault-passphrase-fd", "three"}, "three"},
		{[]string{"serve"}, "run `chatelained init` first"},
		{[]string{"adopt"}, "run `chatelained init` first"},
	} {
		h.run(c.args).want(t, 2, c.says)
	}
	if got := files(t, h.dir); got != "." {
		t.Errorf("mistakes wrote %s", got)
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	h := bare(t)
	for _, c := range []struct{ name, text, at, says string }{
		{"unknown key", "listen: {}\nlissen: {}\n", "2:1", "lissen"},
		{"unknown inner key", "listen:\n  agent_tpc: off\n", "2:3", "agent_tpc"},
		{"duplicate key", "log: {level: info}\nlog: {level: warn}\n", "2:1", "twice"},
		{"anchor", "log: &a {level: info}\n", "1:6", "anchor"},
		{"tag", "log: {level: !!str info}\n", "1:14", "tag"},
		{"tab", "log:\n\tlevel: info\n", "2:1", ""},
		{"two documents", "log: {}\n---\nlog: {}\n", "", ""},
		{"a list", "- listen\n", "1:1", ""},
		{"not YAML", "listen: {agent_tcp: off\n", "", ""},
		{"another address", "listen: {agent_tcp: '0.0.0.0:7317'}\n", "1:21", "only loopback"},
		{"the other loopback", "listen: {agent_tcp: '[::1]:7317'}\n", "1:21", "127.0.0.1"},
		{"a name", "listen: {agent_tcp: 'localhost:7317'}\n", "1:21", "127.0.0.1"},
		{"port 0", "listen: {metrics_tcp: '127.0.0.1:0'}\n", "1:23", "127.0.0.1:7319"},
		{"backend", "vault: {backend: disk}\n", "1:18", "keychain"},
		{"relative path", "vault: {generation_file: counter}\n", "1:26", "absolute"},
		{"number spelled otherwise", "limits: {calls: 0x10}\n", "1:17", ""},
		{"zero calls", "limits: {calls: 0}\n", "1:17", ""},
		{"too many calls", "limits: {calls: 5000}\n", "1:17", "4096"},
		{"calls as text", "limits: {calls: '64'}\n", "1:17", ""},
		{"huge answer", "limits: {answer_bytes: 99999999999}\n", "1:24", ""},
		{"no unit", "sessions: {life: 8}\n", "1:18", ""},
		{"negative life", "sessions: {life: -8h}\n", "1:18", ""},
		{"long life", "sessions: {life: 900h}\n", "1:18", ""},
		{"short card", "approvals: {card: 1s}\n", "1:19", ""},
		{"keep", "ledger: {keep: forever}\n", "1:16", ""},
		{"notify as text", "notify: notify-send now\n", "1:9", ""},
		{"alert as text", "alert: mail owner\n", "1:8", ""},
		{"no such user", "agents: {users: [no-such-user-here]}\n", "1:18", "not known on this machine"},
		{"no such group", "agents: {groups: [no-such-group-here]}\n", "1:19", "not known on this machine"},
		{"level", "log: {level: loud}\n", "1:14", "debug"},
		{"format", "log: {format: xml}\n", "1:15", "json"},
		{"too large", "# " + strings.Repeat("a", 70<<10) + "\n", "", ""},
		{"not UTF-8", "log: {level: \xff\xfe}\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.write("c/chatelaine.yaml", c.text)
			at := "chatelaine.yaml:" + c.at
			if c.at != "" {
				at += ":"
			}
			h.run([]string{"config"}).want(t, 2, at, c.says)
		})
	}
	t.Run("all at once", func(t *testing.T) {
		h.write("c/chatelaine.yaml", "listen: {agent_tcp: here}\nlog: {level: loud}\nextra: 1\n")
		e := h.run([]string{"serve"})
		e.want(t, 2, "3 mistakes", ":1:21:", ":2:14:", ":3:1:")
		h.run([]string{"init"}).want(t, 2, "3 mistakes")
	})
	t.Run("not a file", func(t *testing.T) {
		if err := os.Remove(filepath.Join(h.places.Config, "chatelaine.yaml")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(h.places.Config, "chatelaine.yaml"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.run([]string{"config"}).want(t, 2, "chatelaine.yaml")
	})
	if _, err := os.Lstat(h.places.State); err == nil {
		t.Error("a mistake made a state")
	}
}

// initArgs are the flags that give both passphrases.
// The cost of a guess is the least that the vault takes: what it does not have to
// guard need not be slow.
var initArgs = []string{"init", "--passes", "3", "--vault-passphrase-fd", "3", "--operator-passphrase-fd", "4"}

// A refused init has written nothing at all.
func TestInitRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		fds  []string
		says string
	}{
		{"short", initArgs, []string{"seven77", operatorPass}, "the vault passphrase is shorter than 8"},
		{"short operator", initArgs, []string{vaultPass, "seven77"}, "the operator passphrase is shorter than 8"},
		{"empty", initArgs, []string{"", operatorPass}, "shorter than 8"},
		{"long", initArgs, []string{strings.Repeat("a", 1025), operatorPass}, "longer than 1024"},
		{"same", initArgs, []string{vaultPass, vaultPass}, "must differ"},
		{"closed descriptor", initArgs, []string{vaultPass}, "descriptor 4 for the operator passphrase is not open"},
		{"both closed", initArgs, nil, "descriptor 3 for the vault passphrase is not open"},
		{"one for both", []string{"init", "--vault-passphrase-fd", "3", "--operator-passphrase-fd", "3"}, []string{vaultPass}, "give each its own"},
		{"negative", []string{"init", "--vault-passphrase-fd", "-7", "--operator-passphrase-fd", "3"}, []string{operatorPass}, "not open"},
		{"no terminal", []string{"init"}, nil, "give it on a descriptor"},
		{"weak", append(slices.Clone(initArgs), "--passes", "2"), []string{vaultPass, operatorPass}, "too weak or too costly"},
		{"absurd", append(slices.Clone(initArgs), "--passes", "400000000"), []string{vaultPass, operatorPass}, "too weak or too costly"},
		{"recovery folder is not there", append([]string{"--recovery-out", "/no/such/folder/key"}, initArgs...), []string{vaultPass, operatorPass}, "/no/such/folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := bare(t)
			args := c.args
			if args[0] == "--recovery-out" {
				args = append(append([]string{}, initArgs...), args[:2]...)
			}
			cmd := h.command(args, c.fds...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
			finish(t, cmd).want(t, 2, c.says)
			if got := files(t, h.dir); got != "." {
				t.Errorf("a refusal wrote %s", got)
			}
		})
	}
	t.Run("recovery file is there", func(t *testing.T) {
		h := bare(t)
		h.write("key", "precious")
		h.run(append(append([]string{}, initArgs...), "--recovery-out", filepath.Join(h.dir, "key")), vaultPass, operatorPass).want(t, 2, "is there already and is not overwritten")
		if b, err := os.ReadFile(filepath.Join(h.dir, "key")); err != nil || string(b) != "precious" || files(t, h.dir) != ". key" {
			t.Errorf("the file holds %q, %v; there is %s", b, err, files(t, h.dir))
		}
	})
	t.Run("a folder that cannot be written", func(t *testing.T) {
		h := bare(t)
		cmd := h.command(initArgs, vaultPass, operatorPass)
		if !stranger(t, cmd) {
			return
		}
		if err := os.Chmod(h.dir, 0o555); err != nil {
			t.Fatal(err)
		}
		finish(t, cmd).want(t, 2, "cannot make the folder", "permission denied")
		if got := files(t, h.dir); got != "." {
			t.Errorf("a refusal wrote %s", got)
		}
	})
}

// somebody is a user id of nobody's.
const somebody = 54321

// stranger makes the program run as a user without rights, where the test is
// root: root may write everywhere. It says whether that is possible here: some
// containers have no other users, and a folder for temporary files may be
// closed to them.
func stranger(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	if err := os.Chmod(filepath.Dir(cmd.Path), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
	try := exec.Command(cmd.Path, "version")
	try.SysProcAttr = cmd.SysProcAttr
	if out, err := try.CombinedOutput(); err != nil {
		t.Logf("not tried: root cannot run the program as another user here: %v %s", err, out)
		return false
	}
	return true
}

// An init that was killed leaves a state that is whole or that nothing accepts.
// It is killed as soon as each of its files appears.
func TestInitKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c", "s/vault", "s/audit", "s/recipients", "s/audit-key.age", "s/instance"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			h := bare(t)
			h.plain = true
			cmd := h.command(append(append([]string{}, initArgs...), "--recovery-out", filepath.Join(h.dir, "key")), vaultPass, operatorPass)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(runLimit); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if _, err := os.Lstat(filepath.Join(h.dir, at)); err == nil {
					break
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if _, err := os.Lstat(filepath.Join(h.places.State, "instance")); err == nil {
				h.change("c/chatelaine.yaml", "{}", "listen: {agent_tcp: off}")
				h.open()
				return
			}
			h.run([]string{"serve"}).want(t, 2, "run `chatelained init` first")
			_, err := os.Lstat(filepath.Join(h.places.State, "vault"))
			if again := h.run(initArgs, vaultPass, operatorPass); err == nil {
				again.want(t, 2, "an earlier init did not end")
			} else {
				again.want(t, 0)
			}
		})
	}
}

// TestBadState walks one good state through everything that can be wrong with
// it; each refusal leaves it as it was, and at the end it still serves.
func TestBadState(t *testing.T) {
	t.Parallel()
	ca := testkit.CA(t)
	h := newHome(t, testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(404, `{}`))), testkit.CAFile(t, ca))
	state := func(name string) string { return filepath.Join(h.places.State, name) }
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	put := func(path string, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := files(t, h.places.State)

	t.Run("init again", func(t *testing.T) {
		h.run(initArgs, vaultPass, operatorPass).want(t, 2, "there is a state in "+h.places.State+" already")
	})
	t.Run("no instance", func(t *testing.T) {
		was := read(state("instance"))
		_ = os.Remove(state("instance"))
		h.run([]string{"serve"}).want(t, 2, "no state in")
		h.run(initArgs, vaultPass, operatorPass).want(t, 2, "is there but no instance", "move the folder away")
		put(state("instance"), []byte(`{"id":`))
		h.run([]string{"serve"}).want(t, 2, "instance is damaged")
		h.run([]string{"adopt"}).want(t, 2, "instance is damaged")
		h.run(initArgs, vaultPass, operatorPass).want(t, 2, "there is a state")
		put(state("instance"), was)
	})
	t.Run("vault", func(t *testing.T) {
		was := read(state("vault"))
		put(state("vault"), was[:len(was)/2])
		h.run([]string{"serve"}).want(t, 1, "vault", "damaged")
		put(state("vault"), was)
		if err := os.Chmod(state("vault"), 0o644); err != nil {
			t.Fatal(err)
		}
		h.run([]string{"serve"}).want(t, 1, "not private")
		if err := os.Chmod(state("vault"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("recipients", func(t *testing.T) {
		was := read(state("recipients"))
		for _, bad := range []string{"", "nonsense\n", string(was[:bytes.IndexByte(was, '\n')+1])} {
			put(state("recipients"), []byte(bad))
			h.run([]string{"serve"}).want(t, 1, "recipient")
		}
		put(state("recipients"), was)
	})
	t.Run("runtime", func(t *testing.T) {
		if err := os.MkdirAll(h.places.Runtime, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(h.places.Runtime, 0o777); err != nil {
			t.Fatal(err)
		}
		h.run([]string{"serve"}).want(t, 2, "can be written by others", "0700")
		if err := os.Chmod(h.places.Runtime, 0o700); err != nil {
			t.Fatal(err)
		}
		put(h.places.AgentSocket(), []byte("a file"))
		h.run([]string{"serve"}).want(t, 1, "not a socket", "move it away")
		if got := read(h.places.AgentSocket()); string(got) != "a file" {
			t.Errorf("the file holds %q", got)
		}
		_ = os.Remove(h.places.AgentSocket())
		short := h.places.Runtime
		h.places.Runtime = filepath.Join(h.dir, strings.Repeat("long/", 20))
		h.run([]string{"serve"}).want(t, 2, "at most 103", "choose a shorter --runtime")
		h.places.Runtime = filepath.Join(h.dir, "file")
		put(h.places.Runtime, nil)
		h.run([]string{"serve"}).want(t, 2, "runtime folder")
		h.places.Runtime = short
	})
	t.Run("runtime of another", func(t *testing.T) {
		if os.Getuid() != 0 {
			return // only root can give a folder away
		}
		if err := os.Chown(h.places.Runtime, somebody, somebody); err != nil {
			t.Logf("not tried: root cannot give a folder away here: %v", err)
			return
		}
		h.run([]string{"serve"}).want(t, 2, "belongs to user 54321")
		if err := os.Chown(h.places.Runtime, 0, 0); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("targets", func(t *testing.T) { badTargets(t, h) })
	t.Run("another machine", func(t *testing.T) { otherMachine(t, h) })
	_ = os.Remove(state("holder"))
	if after := files(t, h.places.State); !strings.HasPrefix(after, before[:1]) || !strings.Contains(after, "vault") {
		t.Errorf("the state was %s and is %s", before, after)
	}
	h.open()
	t.Run("in use", func(t *testing.T) {
		pid := regexp.MustCompile(`in use by chatelained serve, pid \d+`)
		for _, args := range [][]string{{"serve"}, {"adopt"}} {
			e := h.run(args)
			e.want(t, 75, "stop it first")
			if !pid.MatchString(e.err) {
				t.Errorf("it does not say who: %s", e.err)
			}
		}
		h.run(initArgs, vaultPass, operatorPass).want(t, 2, "already")
		other := *h
		other.places.State = filepath.Join(h.dir, "s2")
		other.run(initArgs, vaultPass, operatorPass).want(t, 0)
		other.run([]string{"serve"}).want(t, 1, "another daemon serves it")
		op := h.operator()
		defer op.Close()
		if s, err := op.Status(h.ctx()); err != nil || s.Vault.State != "open" {
			t.Errorf("the first daemon: %+v, %v", s, err)
		}
	})
}

func badTargets(t *testing.T, h *home) {
	path := filepath.Join(h.places.Config, "targets.yaml")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.WriteFile(path, was, 0o600) }()
	for _, c := range []struct{ name, from, to, says string }{
		{"unknown key", "    ask: session\n", "    ask: session\n    asks: never\n", "asks"},
		{"unknown identity", "identity: deploy-test-bot", "identity: nobody-knows", "nobody-knows"},
		{"plain text", "url: https://", "url: http://", "http"},
		{"user in the url", "url: https://", "url: https://root:pw@", "url"},
		{"unknown effect", "effects: [read, change]", "effects: [read, chance]", "chance"},
		{"no CA", h.caLine(string(was)), "    ca: /no/such/file.pem\n", "/no/such/file.pem"},
		{"loopback not allowed", "    allow: [loopback]\n", "", "loopback"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(string(was), c.from, c.to, 1)
			if text == string(was) {
				t.Fatalf("%q is not in the site file", c.from)
			}
			h.write("c/targets.yaml", text)
			e := h.run([]string{"serve"})
			e.want(t, 2, c.says, "nothing is served")
			if !regexp.MustCompile(`targets\.yaml:\d+:\d+: `).MatchString(e.err) {
				t.Errorf("no line and column:\n%s", e.err)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		_ = os.Remove(path)
		h.run([]string{"serve"}).want(t, 2, "targets.yaml")
	})
	t.Run("broken contract", func(t *testing.T) {
		h.write("c/targets.yaml", string(was))
		file := filepath.Join("c/contracts/get_job_run/contract.yaml")
		good, err := os.ReadFile(filepath.Join(h.dir, file))
		if err != nil {
			t.Fatal(err)
		}
		h.write(file, strings.Replace(string(good), "effect: read", "effect: reed", 1))
		defer h.write(file, string(good))
		h.run([]string{"serve"}).want(t, 2, "get_job_run/contract.yaml:", "reed", "nothing is served")
	})
}

// caLine is the first line of a site file that names an authority.
func (h *home) caLine(site string) string {
	return regexp.MustCompile(`(?m)^ +ca: .*\n`).FindString(site)
}

// otherMachine moves the state to a machine with another id.
func otherMachine(t *testing.T, h *home) {
	path := filepath.Join(h.places.State, "instance")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var i map[string]string
	if err := json.Unmarshal(b, &i); err != nil {
		t.Fatal(err)
	}
	i["machine"] = "0123456789abcdef0123456789abcdef"
	moved, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, moved, 0o600); err != nil {
		t.Fatal(err)
	}
	h.run([]string{"serve"}).want(t, 2, "belongs to another machine", "chatelained adopt")
	h.run([]string{"adopt"}).want(t, 0, "adopted")
	now, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(bytes.TrimSpace(now), bytes.TrimSpace(b)) {
		t.Errorf("after adopt the instance is %s, %v; it was %s", now, err, b)
	}
}
