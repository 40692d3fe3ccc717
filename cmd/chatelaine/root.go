package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"chatelaine/internal/client"
)

const rootLong = `chatelaine calls named actions of a running chatelaine daemon and decides about them.

An agent asks: call, actions, session start. An operator decides: approvals,
approve, deny, session authorize, unlock, identity. A contract author and a CI
job check: contract lint, contract test, contract diff, audit verify.

Results go to standard output, everything else to standard error. No secret is
ever taken as an argument or from the environment.`

// root builds the command tree.
func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "chatelaine",
		Short:         "Call named actions, and decide about them",
		Long:          rootLong,
		Example:       "  chatelaine status\n  chatelaine call deploy_release service=api environment=test version=2.14.3 reason='fixes retries'\n  chatelaine approvals",
		Version:       programVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetVersionTemplate("chatelaine {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return flagError(c, err)
	})
	f := cmd.PersistentFlags()
	f.StringVar(&a.config, "config", "", "folder of chatelaine.yaml, targets.yaml and contracts/ (or "+client.EnvConfig+")")
	f.StringVar(&a.state, "state", "", "folder of the daemon's vault, record and ledger (or "+client.EnvState+")")
	f.StringVar(&a.runtime, "runtime", "", "folder of the daemon's sockets and of session tokens (or "+client.EnvRuntime+")")
	f.StringVar(&a.daemonUser, "daemon-user", "", "name or number of another user whom the daemon's sockets may belong to (or "+envDaemonUser+")")
	cmd.AddCommand(
		a.callCmd(), a.actionsCmd(), a.statusCmd(), a.doctorCmd(),
		a.approvalsCmd(), a.approveCmd(), a.denyCmd(), a.sessionCmd(),
		a.unlockCmd(), a.lockCmd(), a.vaultCmd(), a.identityCmd(), a.operatorCmd(),
		a.contractCmd(), a.auditCmd(), a.callsCmd(), a.rejectionsCmd(), a.explainCmd(), a.reloadCmd(),
		a.versionCmd(), a.completionCmd(), exitCodesTopic(),
	)
	cmd.SetHelpCommand(helpCmd())
	a.completions(cmd)
	return cmd
}

// flagError says what is wrong with a flag: the nearest name where there is none of
// that name, and a value without the words of the library that read it.
func flagError(c *cobra.Command, err error) error {
	hints := []string{"see " + c.CommandPath() + " --help"}
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := nearest(unknown.GetSpecifiedName(), names); near != "" {
			hints = append([]string{"did you mean --" + near + "?"}, hints...)
		}
	case errors.As(err, &value):
		if kind := flagKind(value.GetFlag().Value.Type()); kind != "" {
			return usage(fmt.Sprintf("--%s cannot be %q: it takes %s", value.GetFlag().Name, value.GetValue(), kind), hints...)
		}
	}
	return usage(lowerFirst(err.Error()), hints...)
}

// flagKind is a flag's kind in words, "" for one that says itself what it takes.
func flagKind(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "duration":
		return "a length of time, such as 30s"
	case "bool":
		return "true or false"
	}
	return ""
}

// noCommand refuses words that name no command, with the nearest names.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hints := []string{"see " + cmd.CommandPath() + " --help"}
	if near := nearest(args[0], commandNames(cmd)); near != "" {
		hints = append([]string{"did you mean " + cmd.CommandPath() + " " + near + "?"}, hints...)
	}
	return usage(fmt.Sprintf("there is no command %q", cmd.CommandPath()+" "+args[0]), hints...)
}

func commandNames(cmd *cobra.Command) []string {
	var out []string
	for _, sub := range cmd.Commands() {
		out = append(out, sub.Name())
	}
	return out
}

// group makes a command that only holds others.
func group(use, short, long, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usage("say which: "+strings.Join(commandNames(cmd), ", "), "see "+cmd.CommandPath()+" --help")
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

// exactly takes the named arguments and no others.
func exactly(names ...string) cobra.PositionalArgs {
	return between(len(names), names...)
}

// between takes at least least of the named arguments. What stands too much is
// not repeated: it may be a passphrase.
func between(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		see := "see " + cmd.CommandPath() + " --help"
		if len(args) < least {
			return usage(fmt.Sprintf("%s needs %s", words(cmd), strings.Join(names[len(args):least], " and ")), see)
		}
		if len(args) > len(names) {
			takes := "no argument"
			if len(names) > 0 {
				takes = "only " + strings.Join(names, " and ")
			}
			return usage(fmt.Sprintf("%s takes %s, but got %s", words(cmd), takes, plural(len(args), "argument", "arguments")), see)
		}
		for i, v := range args {
			if v == "" {
				return usage(fmt.Sprintf("%s: %s is empty", words(cmd), names[i]), see)
			}
		}
		return nil
	}
}

// words are a command's words without the program's name, which stands before
// every message.
func words(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// jsonFlag adds --json.
func jsonFlag(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "json", false, "print one JSON value for a program to read")
}

// proofFlag adds --proof-fd.
func proofFlag(cmd *cobra.Command, fd *int) {
	cmd.Flags().IntVar(fd, "proof-fd", -1, "read the operator passphrase from this open descriptor instead of the terminal")
}

// fdGiven is the descriptor, or -1; a negative number given by hand is refused.
func fdGiven(cmd *cobra.Command, flag string, fd int) (int, error) {
	if cmd.Flags().Changed(flag) && fd < 0 {
		return -1, usage(fmt.Sprintf("--%s %d is no descriptor", flag, fd))
	}
	return fd, nil
}

func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND…]",
		Short:   "Explain a command or a topic",
		Long:    "Explain a command, or a topic: exit-codes.",
		Example: "  chatelaine help call\n  chatelaine help exit-codes",
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return noCommand(root, append(rest, args...)[:1])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("How a command ended, for scripts:\n\n")
	for _, e := range exitTable {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.text)
	}
	b.WriteString("\naudit verify ends with 0 where the record is whole, 1 where it is not, 2 where it\ncannot be read. audit show ends with 0 where the call was found and all of the record\nwas read, 1 where the call is not there or the record is damaged, 2 where the key or\nthe folder is the wrong one. contract diff ends with 0 where every version bump is\nenough, 1 where one is too small or the new edition does not load. doctor ends with 0\nwhere everything is SOLVED or accepted, 1 where something is not.\n\nOnly 3 and 5 are reasons to ask again; after 4 look at the remote system first, then\nuse chatelaine calls resolve.\n")
	return &cobra.Command{
		Use:     "exit-codes",
		Short:   "What the exit codes mean",
		Long:    strings.TrimSuffix(b.String(), "\n"),
		Example: "  chatelaine call get_deployment service=api --json; echo $?",
	}
}

// nearest is the name closest to what was typed, "" where none is close.
func nearest(typed string, names []string) string {
	best, bestAt := "", 1+max(1, len(typed)/3)
	for _, n := range names {
		if d := distance(strings.ToLower(typed), strings.ToLower(n)); d < bestAt {
			best, bestAt = n, d
		}
	}
	return best
}

// distance is the number of single-letter edits and neighbour swaps between
// two words (optimal string alignment).
func distance(x, y string) int {
	a, b := []rune(x), []rune(y)
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
