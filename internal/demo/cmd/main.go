// Command cmd plays the demo: `make demo` builds the programs and runs it. It
// only reads flags and signals; the play is internal/demo.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"chatelaine/internal/demo"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells do
)

func main() {
	o := demo.Options{Out: os.Stdout, Colour: colour()}
	flag.BoolVar(&o.Keep, "keep", false, "leave the throw-away home and say how to look around")
	flag.StringVar(&o.Bin, "bin", "bin", "the `folder` of the built programs")
	flag.StringVar(&o.Contracts, "contracts", "contracts", "the `folder` of the shipped contracts")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "make demo [DEMO_FLAGS=--keep]: the main job, start to end, with a throw-away home")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "demo: it takes only flags; see --help")
		os.Exit(exitUsage)
	}
	// A reader that goes away (a pager that is left) must not end the demo before
	// it has cleaned up; the failed write tells it.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := demo.Run(ctx, o)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		os.Exit(exitInterrupted)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(exitFailed)
	}
}

// colour says whether standard output is a terminal that shows colours
// (no-color.org).
func colour() bool {
	return term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
