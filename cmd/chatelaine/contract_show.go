package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/review"
)

// showOptions are the flags of contract show.
type showOptions struct {
	files        contractFiles
	dir          string
	asJSON, html bool
}

func (a *app) contractShowCmd() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use: "show [ACTION]", Short: "Show one contract as a page for its reviewer",
		Long: `Show what an agent may vary, where it can end up, what is sent, what comes back,
what is asked and how it is done once: the page that a reviewer reads. With --dir a
folder that is in no set; its site file is the one named by --site, else the
targets.yaml beside it, else none, and then addresses and identities are not known.
No daemon is needed.`,
		Example: "  chatelaine contract show deploy_release\n  chatelaine contract show --dir contracts/deploy_release --html > deploy_release.html",
		Args:    between(0, "ACTION"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 == (o.dir != "") {
				return usage("contract show needs ACTION or --dir FOLDER, one of them", "see chatelaine contract show --help")
			}
			if o.asJSON && o.html {
				return usage("--json and --html are two forms; name one")
			}
			c, set, err := o.load(a, args)
			if err != nil {
				return err
			}
			return a.showContract(c, set, o)
		}),
	}
	o.files.add(cmd)
	cmd.Flags().StringVar(&o.dir, "dir", "", "the folder of one contract, loaded or not")
	cmd.Flags().BoolVar(&o.html, "html", false, "print one self-contained HTML file")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// load reads the one contract, and the site file where there is one.
func (o showOptions) load(a *app, args []string) (*actions.Contract, *actions.Set, error) {
	if o.dir != "" {
		return o.loadDir(a)
	}
	f, err := o.files.find(a)
	if err != nil {
		return nil, nil, err
	}
	dir, err := contractFolder(f.contracts, args[0])
	if err != nil {
		return nil, nil, err
	}
	c, set, problems := actions.LoadOne(f.site, dir)
	return c, set, a.refuseProblems(problems)
}

func (o showOptions) loadDir(a *app) (*actions.Contract, *actions.Set, error) {
	dir := filepath.Clean(o.dir)
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil, nil, usage(fmt.Sprintf("there is no folder at %s", o.dir), "name the folder that holds contract.yaml")
	}
	if !isFile(filepath.Join(dir, contractFileName)) {
		return nil, nil, usage(fmt.Sprintf("there is no contract.yaml in %s", o.dir), "name the folder that holds it")
	}
	site := o.files.site
	if site == "" {
		if beside := filepath.Join(dir, "..", "targets.yaml"); isFile(beside) {
			site = beside
		}
	} else if !isFile(site) {
		return nil, nil, usage(fmt.Sprintf("there is no site file at %s", site), "name it with --site FILE")
	}
	if site == "" {
		c, problems := actions.LoadContract(dir)
		return c, nil, a.refuseProblems(problems)
	}
	c, set, problems := actions.LoadOne(site, dir)
	return c, set, a.refuseProblems(problems)
}

// refuseProblems prints what is wrong with a file, nil where nothing is.
func (a *app) refuseProblems(problems actions.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	if err := problems.Render(a.err); err != nil {
		return err
	}
	return refused("nothing is loaded: "+plural(len(problems), "mistake", "mistakes"), "chatelaine contract lint tells them for all contracts")
}

// contractFolder finds an action's folder among the others; a name is no path.
func contractFolder(contracts, action string) (string, error) {
	if strings.ContainsRune(action, filepath.Separator) {
		return "", usage(fmt.Sprintf("there is no contract of action %q: an action is named without its folder", action), "a folder is shown with --dir "+action)
	}
	entries, err := os.ReadDir(contracts)
	if err != nil {
		return "", refused(fmt.Sprintf("%s cannot be read", contracts))
	}
	var known []string
	for _, e := range entries {
		if !isFile(filepath.Join(contracts, e.Name(), "contract.yaml")) {
			continue
		}
		if e.Name() == action {
			return filepath.Join(contracts, action), nil
		}
		known = append(known, e.Name())
	}
	hint := "these are here: " + strings.Join(known, ", ")
	if near := nearest(action, known); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(known) == 0 {
		hint = "name the folder of contracts with --contracts DIR, or one folder with --dir"
	}
	return "", usage(fmt.Sprintf("there is no contract of action %q", action), hint)
}

func (a *app) showContract(c *actions.Contract, set *actions.Set, o showOptions) error {
	page, problems := review.Build(c, set)
	if err := a.refuseProblems(problems); err != nil {
		return err
	}
	if o.asJSON {
		return a.printJSON(page)
	}
	var b bytes.Buffer
	var err error
	if o.html {
		err = page.HTML(&b)
	} else {
		err = page.Text(&b, func(s string) string { return a.paint(bold, s) })
	}
	if err != nil {
		return err
	}
	_, err = a.out.Write(b.Bytes())
	return err
}
