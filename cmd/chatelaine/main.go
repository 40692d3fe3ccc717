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

func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv).run(ctx, os.Args[1:])
}
