// Command chatelained is the daemon: it holds the vault, makes the outbound
// calls and writes the record. Only here are vault and executor joined.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/durable"
)

// version is stamped by the build (-ldflags "-X main.version=…").
var version = "dev"

// Exit codes of the daemon (docs/operations.md).
const (
	exitFailed = 1   // it could not start, or stopped on an error
	exitUsage  = 2   // a flag or the configuration is wrong
	exitHeld   = 75  // another process holds the state folder (EX_TEMPFAIL)
	exitStop   = 130 // Ctrl-C or SIGTERM at a question, as a shell would say it
)

func main() {
	if err := harden(); err != nil {
		fmt.Fprintln(os.Stderr, "chatelained:", err)
		os.Exit(exitFailed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chatelained:", err)
		os.Exit(exitCode(err))
	}
}

// usageError marks what the person at the keyboard can mend.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var held *durable.HeldError
	var usage usageError
	switch {
	case errors.As(err, &held):
		return exitHeld
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errInterrupted):
		return exitStop
	}
	return exitFailed
}

// program is what every subcommand needs: the places and where they came from.
type program struct {
	options client.PlaceOptions
}

func (p *program) places() (client.Places, error) {
	p.options.UID = os.Getuid()
	pl, err := client.FindPlaces(p.options)
	if err != nil {
		return pl, usageError{err}
	}
	return pl, nil
}

func rootCommand() *cobra.Command {
	p := &program{}
	root := &cobra.Command{
		Use:           "chatelained",
		Short:         "The daemon that holds secrets and performs named actions for AI agents",
		Long:          "chatelained holds the vault, makes the outbound calls and writes the record.\nPeople, agents and CI talk to it with the command chatelaine.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
		Args:          cobra.ArbitraryArgs, // so that an unknown command is our error
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q; see chatelained --help", args[0])}
			}
			return c.Help()
		},
	}
	root.SetVersionTemplate("chatelained {{.Version}}\n")
	f := root.PersistentFlags()
	f.StringVar(&p.options.Config, "config", "", "configuration folder (CHATELAINE_CONFIG)")
	f.StringVar(&p.options.State, "state", "", "state folder (CHATELAINE_STATE)")
	f.StringVar(&p.options.Runtime, "runtime", "", "runtime folder, for the sockets (CHATELAINE_RUNTIME)")
	root.AddCommand(initCommand(p), serveCommand(p), configCommand(p), adoptCommand(p), recoverCommand(p), rewrapCommand(p), versionCommand())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Long: "Print the version of this program.",
		Example: "  chatelained version", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "chatelained", version)
			return err
		},
	}
}

// noArgs is cobra.NoArgs as a usage error.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, but got %d; see %s --help", c.CommandPath(), len(args), c.CommandPath())}
	}
	return nil
}
