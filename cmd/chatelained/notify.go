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
	// notifyLimit ends a notify program that hangs.
	notifyLimit = 10 * time.Second
	// notifyAtOnce bounds how many may run: cards beyond it are still on the
	// desk, only their notice is lost.
	notifyAtOnce = 4
)

// notifier runs the operator's program when a card opens, with the sentence on
// its standard input. There is no shell, no argument of the agent's, and its
// output goes nowhere.
type notifier struct {
	argv   []string
	env    []string
	places chan struct{}
	log    *slog.Logger
}

func newNotifier(argv, env []string, log *slog.Logger) *notifier {
	return &notifier{argv: argv, env: env, places: make(chan struct{}, notifyAtOnce), log: log}
}

func (n *notifier) send(sentence string) {
	if len(n.argv) == 0 {
		return
	}
	select {
	case n.places <- struct{}{}:
	default:
		n.log.Warn("notify skipped: too many at once")
		return
	}
	go func() {
		defer func() { <-n.places }()
		ctx, cancel := context.WithTimeout(context.Background(), notifyLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, n.argv[0], n.argv[1:]...)
		cmd.Env = n.env
		cmd.Stdin = strings.NewReader(sentence + "\n")
		cmd.WaitDelay = time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children end with it
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		if err := cmd.Run(); err != nil {
			n.log.Warn("notify failed", "program", n.argv[0], "cause", err.Error())
		}
	}()
}
