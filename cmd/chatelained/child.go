package main

import (
	"context"
	"log/slog"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// childLimit ends a program of the operator's that hangs.
	childLimit = 10 * time.Second
	// childrenAtOnce bounds how many of one kind may run.
	childrenAtOnce = 4
)

// child is a program of the operator's that is told something on its standard
// input. There is no shell, no argument of the agent's or of a remote system's,
// its output goes nowhere, and its failure stops nothing.
type child struct {
	what   string // for the log: notify or alert
	argv   []string
	env    []string
	places chan struct{}
	log    *slog.Logger
}

func newChild(what string, argv, env []string, log *slog.Logger) *child {
	return &child{what: what, argv: argv, env: env, places: make(chan struct{}, childrenAtOnce), log: log}
}

// configured says whether there is a program to run.
func (c *child) configured() bool { return len(c.argv) > 0 }

// tell starts the program with one line on its standard input and does not wait
// for it. It says whether there was a place for it.
func (c *child) tell(line string) bool {
	select {
	case c.places <- struct{}{}:
	default:
		c.log.Warn(c.what + " skipped: too many at once")
		return false
	}
	go func() {
		defer func() { <-c.places }()
		ctx, cancel := context.WithTimeout(context.Background(), childLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
		cmd.Env = c.env
		cmd.Stdin = strings.NewReader(line + "\n")
		cmd.WaitDelay = time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children end with it
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		if err := cmd.Run(); err != nil {
			c.log.Warn(c.what+" failed", "program", c.argv[0], "cause", err.Error())
		}
	}()
	return true
}
