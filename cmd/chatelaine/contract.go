package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/client"
)

func (a *app) contractCmd() *cobra.Command {
	return group("contract", "Check and list contracts",
		`A contract is a folder with contract.yaml and fixtures. lint and test need no
daemon, so that CI can run them; list asks the daemon what it has loaded.`,
		"  chatelaine contract lint --contracts contracts --site contracts/targets.yaml\n  chatelaine contract test deploy_release",
		a.contractLintCmd(), a.contractTestCmd(), a.contractRecordCmd(), a.contractListCmd(), a.contractShowCmd(), a.contractDiffCmd(), a.contractSchemaCmd(), a.contractNewCmd())
}

// contractFiles are where the contracts and the site file are.
type contractFiles struct{ contracts, site string }

func (f *contractFiles) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.contracts, "contracts", "", "folder of contract folders (default contracts/ in the configuration folder)")
	cmd.Flags().StringVar(&f.site, "site", "", "the site file (default targets.yaml in the folder that --contracts names, else in the configuration folder)")
}

// find fills what was not given and says which of them is not there.
func (f contractFiles) find(a *app) (contractFiles, error) {
	p, err := a.places()
	if err != nil {
		return f, err
	}
	if f.site == "" {
		f.site = p.SiteFile()
		if f.contracts != "" {
			if beside := f.contracts + "/targets.yaml"; isFile(beside) {
				f.site = beside
			}
		}
	}
	if f.contracts == "" {
		f.contracts = p.Contracts()
	}
	if fi, err := os.Stat(f.contracts); err != nil || !fi.IsDir() {
		return f, usage(fmt.Sprintf("there is no folder of contracts at %s", f.contracts), "name it with --contracts DIR")
	}
	if isFile(filepath.Join(f.contracts, contractFileName)) {
		return f, usage(fmt.Sprintf("%s is the folder of one contract", f.contracts), "name the folder that it lies in with --contracts DIR, and the contract by its action")
	}
	if !isFile(f.site) {
		return f, usage(fmt.Sprintf("there is no site file at %s", f.site), "name it with --site FILE")
	}
	return f, nil
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

// knownActions refuses a name that no contract has: a misspelt one would pass
// every check.
func knownActions(set *actions.Set, names []string) error {
	var known []string
	for _, contract := range set.Contracts() {
		known = append(known, contract.Action())
	}
	return knownFolders(known, names)
}

func (a *app) contractListCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the contracts that the daemon has loaded",
		Long:    "List the contracts that the daemon has loaded, with the targets that each can reach.",
		Example: "  chatelaine contract list\n  chatelaine contract list --json",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.withOperator(func(op *client.Operator) error { return a.listContracts(cmd.Context(), op, asJSON) })
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
