package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"chatelaine/internal/client"
)

// TestInterruptedChangeIsUnknown interrupts a call after it was sent: whoever
// reads the exit code must not repeat it.
func TestInterruptedChangeIsUnknown(t *testing.T) {
	d, dir := atFake(t, map[string]string{"sessions": "authorised"})
	bin, err := programs["chatelaine"]()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin)
	cmd.Args = []string{"chatelaine", "call", "deploy_release", "version=silence", "--request-id", "my-call-0001"}
	cmd.Env = []string{"HOME=" + t.TempDir(), "CHATELAINE_RUNTIME=" + dir, "CHATELAINE_AGENT=cli-test"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.silent:
	case <-time.After(ptyTimeout):
		cmd.Process.Kill()
		t.Fatal("the call was never sent")
	}
	cmd.Process.Signal(os.Interrupt)
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUnknown {
		t.Fatalf("%v; it said:\n%s", err, out.String())
	}
	for _, want := range []string{"the call may have happened", "--request-id my-call-0001 asks for its outcome and sends nothing twice"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}

// TestClassify holds the errors of the client to exit codes and hints.
func TestClassify(t *testing.T) {
	cases := []struct {
		err  error
		exit int
		want string
	}{
		{&client.StrangerError{Where: "/run/x.sock", UID: 4242}, exitRefused, "user id 4242"},
		{&client.StrangerError{Where: "/run/x.sock", UID: 4242}, exitRefused, "--daemon-user"},
		{&client.UnreachableError{Where: "/s", Err: client.ErrNoSocket}, exitLater, "chatelained serve"},
		{&client.UnreachableError{Where: "/s", Err: client.ErrNobody}, exitLater, "has stopped"},
		{&client.UnreachableError{Where: "/s", Err: client.ErrForbidden}, exitRefused, "operators use operator.sock"},
		{&client.UnreachableError{Where: "/s", Err: context.Canceled}, exitInterrupted, "interrupted"},
		{&client.ReplyError{Call: "GET /v1/status", Status: 200, Err: io.EOF}, exitRefused, "of the same release"},
		{&client.Error{Code: "PROOF_TOO_SOON", Message: "Too many tries; wait a little.", RetryAfter: 59 * time.Second}, exitLater, "try again in 59 s"},
		{&client.Error{Code: "PROOF_TOO_SOON", Message: "Too many tries; wait a little.", RetryAfter: 59 * time.Second}, exitLater, "chatelaine unlock --recovery-code is not held up"},
		{&client.Error{Code: "VAULT_LOCKED", Message: "Locked."}, exitLater, "chatelaine unlock"},
		{&client.Error{Code: "NOT_FOUND", Message: "evil\x1b[31m\nline"}, exitRefused, `evil\u001b[31m\nline`},
		{errors.New("Something else"), exitRefused, "something else"},
	}
	for _, c := range cases {
		f := asFailure(classify(c.err))
		text := strings.Join(f.lines(), "\n")
		if f.exit != c.exit || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit %d, text %q; want %d, %q", c.err, f.exit, text, c.exit, c.want)
		}
		if strings.Contains(text, "\x1b") {
			t.Errorf("%v: the text steers the terminal", c.err)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"service", "environment", "version", "reason"}
	for typed, want := range map[string]string{"servce": "service", "evnironment": "environment", "Version": "version", "resaon": "reason", "url": "", "": "", "x": ""} {
		if got := nearest(typed, names); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}

func TestTableAligns(t *testing.T) {
	var b bytes.Buffer
	rows := []row{{cc(dimmed, "a"), c("long text"), c("x")}, {c("ağaç"), cc(good, "b"), c("y")}, {c("c"), c(""), c("")}}
	writeTable(&b, true, rows, "")
	want := "\x1b[2ma\x1b[0m     long text  x\nağaç  \x1b[32mb\x1b[0m          y\nc\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"plain", "a\nb\tc", "\x1b[31m", "\u202e\u200b", "\xff", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range printable(s) {
			if hidden(r) {
				t.Fatalf("%q keeps %U", s, r)
			}
		}
	})
}

func FuzzInput(f *testing.F) {
	f.Add(fakeInput, "service=api")
	f.Add(`{"properties":{"a":{"type":["integer","null"]}}}`, "a=1")
	f.Add(`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":[1,"x"]}}}`, "a=")
	f.Fuzz(func(t *testing.T, doc, arg string) {
		s, err := parseSchema([]byte(doc))
		if err != nil {
			return
		}
		v, err := buildInput("action", s, []string{arg})
		if err == nil && (!v.IsValid() || v.Kind() != '{') {
			t.Fatalf("%q made %q", arg, v)
		}
	})
}
