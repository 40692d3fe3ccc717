package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"chatelaine/internal/client"
)

// The environment of the program besides the places.
const (
	envAgent      = "CHATELAINE_AGENT"       // the agent's name
	envAgentURL   = "CHATELAINE_AGENT_URL"   // the TCP listener instead of the socket
	envDaemonUser = "CHATELAINE_DAEMON_USER" // whom the sockets may belong to
)

// app is one run of the program: where it reads and writes, and the flags that
// every command has.
type app struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
	colour bool

	config, state, runtime, daemonUser string
}

func newApp(in io.Reader, out, err io.Writer, getenv func(string) string) *app {
	return &app{in: in, out: out, err: err, getenv: getenv, colour: wantsColour(out, getenv)}
}

// wantsColour follows no-color.org: colour only on a terminal that can, and not
// where NO_COLOR is set to anything.
func wantsColour(out io.Writer, getenv func(string) string) bool {
	return isTerminal(out) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil {
		err = stopped(err)
	}
	f := asFailure(err)
	for _, line := range f.lines() {
		fmt.Fprintln(a.err, "chatelaine: "+line)
	}
	return f.exit
}

// note writes one line for the person, never a result.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.err, "chatelaine: "+fmt.Sprintf(format, args...))
}

func (a *app) places() (client.Places, error) {
	p, err := client.FindPlaces(client.PlaceOptions{
		Config: a.config, State: a.state, Runtime: a.runtime, Getenv: a.getenv, UID: os.Getuid(), Machine: true,
	})
	if err != nil {
		return p, usage(err.Error())
	}
	return p, nil
}

func (a *app) owners() (client.Owners, error) {
	o := client.OwnAndRoot()
	name := a.daemonUser
	if name == "" {
		name = a.getenv(envDaemonUser)
	}
	if name == "" {
		return o, nil
	}
	o, err := o.WithUser(name)
	if err != nil {
		return o, usage(err.Error(), "give --daemon-user a user name or number of this machine")
	}
	return o, nil
}

func userAgent() string { return "chatelaine/" + programVersion() }

// operator gives the client of the operator socket. The caller closes it.
func (a *app) operator() (*client.Operator, error) {
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	o, err := a.owners()
	if err != nil {
		return nil, err
	}
	return client.NewOperator(p.OperatorSocket(), o, userAgent()), nil
}

// withOperator runs f with the operator client.
func (a *app) withOperator(f func(*client.Operator) error) error {
	op, err := a.operator()
	if err != nil {
		return err
	}
	defer op.Close()
	return f(op)
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// agentName is the flag, the environment, or one name for each user: a name
// belongs to the user who first had it authorised.
func (a *app) agentName(flag string) (string, error) {
	name := flag
	if name == "" {
		name = a.getenv(envAgent)
	}
	if name == "" {
		name = defaultAgentName()
	}
	if err := client.CheckAgentName(name); err != nil {
		return "", usage(fmt.Sprintf("%q cannot be an agent's name: %v", name, err))
	}
	return name, nil
}

func defaultAgentName() string {
	who := fmt.Sprint(os.Getuid())
	if u, err := user.Current(); err == nil {
		if n := strings.Trim(notInName.ReplaceAllString(u.Username, "-"), "-"); n != "" && len(n) < 48 {
			who = n
		}
	}
	return "cli-" + who
}

// do wraps a command's work, so that what it returns is told apart from what
// the command line parser returns.
func do(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		if err == nil {
			return nil
		}
		return classify(err)
	}
}

// stopped is what an interrupt makes of an error.
func stopped(err error) error {
	f := asFailure(err)
	if errors.Is(err, errInterrupted) {
		return &failure{exit: exitInterrupted, msg: "interrupted"}
	}
	if f.exit == exitUnknown {
		return f
	}
	f.exit = exitInterrupted
	return f
}
