package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"chatelaine/internal/testkit"
)

// The keychain library keeps one bus connection a process, so that each case
// runs in a child of its own. The packages dbus and gnome-keyring are needed.

// busConfig is a bus that starts no service by itself: nothing outlives a test.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`

// session is a private bus, with its home.
type session struct {
	home, address string
	env           []string
}

// newSession starts a bus. Its folder is short, whatever TMPDIR says: a socket's
// path has at most 107 bytes.
func newSession(t *testing.T) session {
	t.Helper()
	testkit.NamedUser(t)
	home, err := os.MkdirTemp("/tmp", "ks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	socket := filepath.Join(home, "bus")
	config := filepath.Join(home, "bus.conf")
	write(t, config, fmt.Appendf(nil, busConfig, socket))
	s := session{home: home, address: "unix:path=" + socket}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + home, "DBUS_SESSION_BUS_ADDRESS=" + s.address, "DISPLAY=:99"}
	s.start(t, "", "dbus-daemon", "--nofork", "--nopidfile", "--config-file="+config)
	s.await(t, "the bus", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return s
}

// start runs a program until the test ends.
func (s session) start(t *testing.T, input, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = s.env, s.home, strings.NewReader(input)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: install the packages dbus and gnome-keyring", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

func (s session) await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	testkit.Until(t, what, ready)
}

// connect is a second client on the bus.
func (s session) connect(t *testing.T) *dbus.Conn {
	t.Helper()
	conn, err := dbus.Connect(s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// keyring starts gnome-keyring; with a password it makes an unlocked keyring.
func (s session) keyring(t *testing.T, password string) *dbus.Conn {
	t.Helper()
	args := []string{"--foreground", "--components=secrets"}
	if password != "" {
		args = append(args, "--unlock")
	}
	s.start(t, password, "gnome-keyring-daemon", args...)
	conn := s.connect(t)
	s.await(t, "the keyring", func() bool {
		var there bool
		if err := conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, secretsName).Store(&there); err != nil || !there {
			return false
		}
		var paths []dbus.ObjectPath
		err := property(t.Context(), conn, secretsPath, "org.freedesktop.Secret.Service", "Collections", &paths)
		return err == nil && (password == "" || strings.Contains(fmt.Sprint(paths), "/login"))
	})
	return conn
}

func (s session) lock(t *testing.T, conn *dbus.Conn) {
	t.Helper()
	call := conn.Object(secretsName, secretsPath).Call("org.freedesktop.Secret.Service.Lock", 0, []dbus.ObjectPath{loginCollection})
	if call.Err != nil {
		t.Fatal(call.Err)
	}
}

// run plays a child on this bus and returns what it says, line by line.
func (s session) run(t *testing.T, name string, args ...string) []string {
	t.Helper()
	cmd := child(t, name, s.env, args...)
	var out, errText bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errText
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s%s", name, err, out.String(), errText.String())
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// answersIn is the time-out where somebody answers, or it is plain that nobody
// will: far more than it takes.
const answersIn = "1m"

func init() {
	children["keychain"] = playKeychain
	children["keychain vault"] = playVault
}

// playKeychain does the calls put, get and delete, and says how each ended. The
// first argument is the time-out.
func playKeychain(args []string) error {
	timeout, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	k := Keychain("chatelaine test", timeout)
	ctx := context.Background()
	for _, op := range args[1:] {
		word, rest, _ := strings.Cut(op, " ")
		name, value, _ := strings.Cut(rest, " ")
		start := time.Now()
		var b []byte
		switch word {
		case "put":
			err = k.Put(ctx, name, []byte(value))
		case "get":
			b, err = k.Get(ctx, name)
		case "delete":
			err = k.Delete(ctx, name)
		}
		if took := time.Since(start); took > timeout+time.Minute { // the library itself waits for ever
			return fmt.Errorf("%s took %s", op, took)
		}
		fmt.Println(classOf(err), fmt.Sprintf("%q", b), err)
	}
	return nil
}

func classOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, ErrKeychainAbsent):
		return "absent"
	case errors.Is(err, ErrKeychainLocked):
		return "locked"
	case errors.Is(err, ErrKeychainUnavailable):
		return "unavailable"
	case errors.Is(err, ErrTooLarge):
		return "large"
	}
	return "other"
}

// wantLines compares the first words, and that each line holds its text.
func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i, w := range want {
		class, text, _ := strings.Cut(w, " ")
		if !strings.HasPrefix(got[i], class+" ") || !strings.Contains(got[i], text) {
			t.Errorf("call %d: got %q, want %q", i, got[i], w)
		}
	}
}

func TestKeychainPresent(t *testing.T) {
	s := newSession(t)
	s.keyring(t, "pw")
	fits := strings.Repeat("x", maxKeychainItem/4*3)
	wantLines(t, s.run(t, "keychain", answersIn,
		"get a", "delete a", "put a one", "get a", "put a \xff\xfe-bytes", "get a", "put b two", "get b", "delete a", "get a", "get b",
		"put c "+fits, "put c "+fits+"x"),
		"absent", "absent", "done", `done "one"`, "done", `done "\xff\xfe-bytes"`, "done", `done "two"`, "done", "absent", `done "two"`,
		"done", "large 16384")
}

func TestKeychainLocked(t *testing.T) {
	s := newSession(t)
	conn := s.keyring(t, "pw")
	wantLines(t, s.run(t, "keychain", answersIn, "put a one"), "done")
	s.lock(t, conn)
	wantLines(t, s.run(t, "keychain", answersIn, "get a", "put a two", "delete a"), "locked unlock", "locked unlock", "locked unlock")
}

func TestKeychainNeverMade(t *testing.T) {
	s := newSession(t)
	s.keyring(t, "")
	wantLines(t, s.run(t, "keychain", answersIn, "get a", "put a one"), "locked keyring", "locked keyring")
}

func TestKeychainWithoutAService(t *testing.T) {
	s := newSession(t)
	wantLines(t, s.run(t, "keychain", answersIn, "get a"), "unavailable org.freedesktop.secrets")
}

func TestKeychainAddressThatIsStale(t *testing.T) {
	s := newSession(t)
	s.env = append(s.env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+s.home+"/gone")
	wantLines(t, s.run(t, "keychain", answersIn, "get a", "put a one"), "unavailable cannot be reached", "unavailable cannot be reached")
}

func TestKeychainBusThatIsSilent(t *testing.T) {
	s := newSession(t)
	socket := filepath.Join(s.home, "silent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	s.env = append(s.env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+socket)
	wantLines(t, s.run(t, "keychain", "300ms", "get a", "put a one"), "unavailable no answer within 300ms", "unavailable no answer")
}

func TestKeychainServiceThatIsSilent(t *testing.T) {
	s := newSession(t)
	conn := s.connect(t)
	requestName(t, conn)
	conn.Eavesdrop(make(chan *dbus.Message, 1000)) // takes every message and answers none
	wantLines(t, s.run(t, "keychain", "300ms", "get a", "put a one"), "unavailable no answer within 300ms", "unavailable no answer")
}

func requestName(t *testing.T, conn *dbus.Conn) {
	t.Helper()
	reply, err := conn.RequestName(secretsName, dbus.NameFlagDoNotQueue)
	if err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("got %v, %v", reply, err)
	}
}

// prompting is a service that says it is unlocked and then waits for a person.
type prompting struct{}

func (prompting) Get(_, name string) (dbus.Variant, *dbus.Error) {
	if name == "Collections" {
		return dbus.MakeVariant([]dbus.ObjectPath{loginCollection}), nil
	}
	return dbus.MakeVariant(false), nil
}

func (prompting) Unlock([]dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	select {}
}

func TestKeychainThatAsksAPerson(t *testing.T) {
	s := newSession(t)
	conn := s.connect(t)
	for _, path := range []dbus.ObjectPath{secretsPath, loginCollection} {
		if err := conn.Export(prompting{}, path, "org.freedesktop.DBus.Properties"); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Export(prompting{}, secretsPath, "org.freedesktop.Secret.Service"); err != nil {
		t.Fatal(err)
	}
	requestName(t, conn)
	calls, want := []string{"200ms"}, []string{}
	for range keychainStuck + 2 { // the last ones find the places taken
		calls, want = append(calls, "get a"), append(want, "unavailable waiting for a person")
	}
	wantLines(t, s.run(t, "keychain", calls...), want...)
}

// TestKeychainWithoutABus also proves that no bus is started for it.
func TestKeychainWithoutABus(t *testing.T) {
	s := newSession(t)
	marker := filepath.Join(s.home, "launched")
	if err := os.WriteFile(filepath.Join(s.home, "dbus-launch"), []byte("#!/bin/sh\n: >"+marker+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.env = append(s.env, "PATH="+s.home+":"+os.Getenv("PATH"))
	for _, address := range []string{"autolaunch:", "unixexec:path=/bin/touch,argv1=" + marker, "tcp:host=127.0.0.1,port=1", "unix:path=/none;tcp:host=127.0.0.1,port=1"} {
		if address == "autolaunch:" && busAt(os.Getuid()) != "" {
			continue // this machine has a session bus; TestBusAddress has the case
		}
		s.env = append(s.env, "DBUS_SESSION_BUS_ADDRESS="+address)
		wantLines(t, s.run(t, "keychain", answersIn, "get a", "put a one"), "unavailable session bus", "unavailable session bus")
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program was started")
	}
}

func TestBusAddress(t *testing.T) {
	for _, c := range []struct {
		set, there, want string
		ok               bool
	}{
		{"unix:path=/run/x", "", "unix:path=/run/x", true},
		{"unix:path=/run/x;unix:abstract=y", "/run/user/1/bus", "unix:path=/run/x;unix:abstract=y", true},
		{"", "/run/user/1/bus", "unix:path=/run/user/1/bus", true},
		{"autolaunch:", "/run/user/1/bus", "unix:path=/run/user/1/bus", true},
		{"", "", "", false},
		{"autolaunch:", "", "", false},
		{"unixexec:path=/bin/sh", "/run/user/1/bus", "", false},
		{"tcp:host=a.example,port=1", "/run/user/1/bus", "", false},
		{"unix:path=/a;", "", "", false},
	} {
		got, err := busAddress(c.set, c.there)
		if got != c.want || (err == nil) != c.ok || err != nil && !errors.Is(err, ErrKeychainUnavailable) {
			t.Errorf("%q and %q: got %q, %v", c.set, c.there, got, err)
		}
	}
}

// playVault keeps an identity in the keychain and uses it. A thief of the
// keychain gets ciphertext.
func playVault(args []string) error {
	o := cheap
	o.Backend = Keychain("chatelaine test", time.Minute)
	ctx := context.Background()
	v, err := Create(args[0], sec(goodPass), o)
	if err != nil {
		return err
	}
	gen, err := v.Put(ctx, "a", bearer(), sec(planted), false)
	if err != nil {
		return err
	}
	w, err := Open(args[0], o)
	if err != nil {
		return err
	}
	if err := w.Unlock(ctx, sec(goodPass)); err != nil {
		return err
	}
	stolen, err := o.Backend.Get(ctx, item{name: "a", generation: gen}.outsideName(w.head.id))
	if err != nil || bytes.Contains(stolen, []byte(planted)) || len(stolen) != len(planted)+sealExtra {
		return fmt.Errorf("the keychain holds %d bytes: %w", len(stolen), err)
	}
	l, err := w.Lease(ctx, "a")
	if err != nil {
		return err
	}
	defer l.Close()
	h := map[string][]string{}
	if err := l.Attach(headers(h), madeFor(bearer())); err != nil {
		return err
	}
	s := w.State()
	fmt.Println(h["Authorization"][0], s.State, s.Backend, s.Rollback)
	return w.Delete(ctx, "a")
}

func TestVaultWithAKeychain(t *testing.T) {
	s := newSession(t)
	s.keyring(t, "pw")
	got := s.run(t, "keychain vault", filepath.Join(t.TempDir(), "vault"))
	want := "Bearer " + planted + " open OS keychain, service chatelaine test OS keychain, service chatelaine test"
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %q", got)
	}
	err := filepath.WalkDir(s.home, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && bytes.Contains(read(t, path), []byte(planted)) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
