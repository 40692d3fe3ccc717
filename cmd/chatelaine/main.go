// Chatelaine is what a person, an agent or a CI job types: it calls actions as
// an agent, decides as an operator, and checks contracts and records.
//
// It stands on the near side of the wall: it never links the vault (a test
// asks the go command), keeps no secret, and takes none as an argument. It is
// a program; nothing imports it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(realMain()) }

// realMain is main with its exit code, so that tests can run the real program.
func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	return a.run(ctx, os.Args[1:])
}
