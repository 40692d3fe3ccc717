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
	"runtime/debug"
	"syscall"
)

func main() {
	collectSeldom()
	os.Exit(realMain())
}

// seldomGCPercent lets four times as much garbage lie about as there is in use.
const seldomGCPercent = 400

// collectSeldom is for a program that mostly ends within a second or two: reading a
// thousand contracts makes a gigabyte of garbage and keeps a seventh, and a third of
// the time went into collecting it. A GOGC of the caller's own stays.
func collectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(seldomGCPercent)
	}
}

func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv).run(ctx, os.Args[1:])
}
