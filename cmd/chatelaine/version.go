package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set when a release is built (-ldflags "-X main.version=…").
var version string

func programVersion() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return bi.Main.Version
	}
	return "unreleased"
}

func (a *app) versionCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Long:    "Print the version of this program. The daemon's is in chatelaine status.",
		Example: "  chatelaine version\n  chatelaine version --json",
		Args:    exactly(),
		RunE: do(func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(map[string]string{"version": programVersion(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			fmt.Fprintln(a.out, "chatelaine "+programVersion())
			return nil
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// shells are those that completion writes for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print the completion script for a shell",
		Long:      "Print the completion script for bash, zsh, fish or powershell.",
		Example:   "  source <(chatelaine completion bash)\n  chatelaine completion zsh > ~/.zfunc/_chatelaine",
		Args:      exactly("SHELL"),
		ValidArgs: shells,
		RunE: do(func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			hint := "bash, zsh, fish and powershell are"
			if near := nearest(args[0], shells); near != "" {
				hint = "did you mean " + near + "?"
			}
			return usage(fmt.Sprintf("%q is not a shell that completion knows", args[0]), hint)
		}),
	}
	return cmd
}
