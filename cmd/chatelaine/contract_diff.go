package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/actions/compare"
	"chatelaine/internal/actions/strictyaml"
)

// diffTimeout bounds a comparison with all its calls of git.
const diffTimeout = time.Minute

// diffOptions are the flags of contract diff.
type diffOptions struct {
	contracts        string
	asJSON, markdown bool
}

func (a *app) contractDiffCmd() *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use: "diff OLD [NEW]", Short: "Say what changed between two editions of contracts",
		Long: `Compare two editions of one contract, or of a folder of contracts with its site
file: what breaks, stays right or is only worded otherwise for the agent, the
operator and the upstream, which version bump that needs, and first of all what
loosens an authority. OLD and NEW are each a folder, a contract file, a git
revision or REV:PATH; a revision alone means the path of the other side. A path
alone is compared with its state at HEAD, a revision alone with HEAD.
It ends with 1 where a bump is too small or the new edition does not load.`,
		Example: "  chatelaine contract diff contracts\n  chatelaine contract diff v1.4.0:contracts contracts --markdown\n  chatelaine contract diff contracts/deploy_release new/deploy_release --json",
		Args:    between(1, "OLD", "NEW"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if o.asJSON && o.markdown {
				return usage("--json and --markdown are two forms; name one")
			}
			ctx, stop := context.WithTimeout(cmd.Context(), diffTimeout)
			defer stop()
			return a.diff(ctx, args, o)
		}),
	}
	cmd.Flags().StringVar(&o.contracts, "contracts", "contracts", "the folder of contracts that two revisions without a path mean")
	cmd.Flags().BoolVar(&o.markdown, "markdown", false, "print Markdown for the text of a pull request")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func (a *app) diff(ctx context.Context, args []string, o diffOptions) error {
	old, new, err := findEditions(ctx, args, o.contracts)
	if err != nil {
		return err
	}
	report, problems, err := compareEditions(old, new)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		if err := problems.Render(a.err); err != nil {
			return err
		}
		return refused("the new edition does not load: "+plural(len(problems), "mistake", "mistakes"), "see chatelaine contract lint")
	}
	if err := a.writeDiff(report, o); err != nil {
		return err
	}
	if small := report.TooSmall(); len(small) > 0 {
		var hints []string
		for _, k := range report.Contracts {
			if !k.Enough {
				hints = append(hints, fmt.Sprintf("%s needs a %s bump from %s", k.Action, k.Needs, k.OldVersion))
			}
		}
		return refused("the version bump is too small: "+strings.Join(small, ", "), hints...)
	}
	return nil
}

func (a *app) writeDiff(report compare.Report, o diffOptions) error {
	if o.asJSON {
		return a.printJSON(report)
	}
	var b bytes.Buffer
	var err error
	if o.markdown {
		err = report.Markdown(&b)
	} else {
		err = report.Text(&b, compare.Paint{
			Heading: func(s string) string { return a.paint(bold, s) },
			Loosens: func(s string) string { return a.paint(warn, s) },
			Bad:     func(s string) string { return a.paint(bad, s) },
		})
	}
	if err != nil {
		return err
	}
	_, err = a.out.Write(b.Bytes())
	return err
}

// compareEditions loads both sides. Mistakes of the new one are returned; a
// contract of the old one that does not load is compared as one that cannot be
// told.
func compareEditions(old, new edition) (compare.Report, actions.Problems, error) {
	if old.single != new.single && !old.empty() && !new.empty() {
		return compare.Report{}, nil, usage("one side is one contract, the other a folder of contracts", "name two of a kind")
	}
	before, _, err := old.side(true)
	if err != nil {
		return compare.Report{}, nil, err
	}
	after, problems, err := new.side(false)
	if err != nil || len(problems) > 0 {
		return compare.Report{}, problems.Sort(), err
	}
	if old.single && new.single {
		before.Contracts = sameName(before.Contracts, after.Contracts)
	}
	return compare.Sides(before, after), nil, nil
}

// sameName puts the one old contract under the new one's name: two files that
// somebody names beside each other are two editions, whatever they are called.
func sameName(old, new map[string]compare.Text) map[string]compare.Text {
	for name := range new {
		for _, t := range old {
			return map[string]compare.Text{name: t}
		}
	}
	return old
}

// side loads an edition. lenient marks what does not load instead of refusing
// it.
func (e edition) side(lenient bool) (compare.Side, actions.Problems, error) {
	out := compare.Side{Name: e.name, Contracts: map[string]compare.Text{}}
	var problems actions.Problems
	site, refused, err := e.readSite()
	if err != nil {
		return out, nil, err
	}
	if site != nil {
		out.Site = &compare.Site{File: e.siteName(), Root: site.Root(), Digests: site.FileDigests()}
	} else if !lenient {
		problems = append(problems, refused...)
	}
	for _, f := range e.contracts {
		c, root, ps := actions.ParseContract(f.name, f.folder, f.text, site)
		key := f.folder
		switch {
		case len(ps) > 0 && !lenient:
			problems = append(problems, ps...)
			continue
		case len(ps) > 0:
			if key == "" {
				key = f.name
			}
			// Its version can often be read all the same.
			old := strictyaml.Parse(f.name, f.text, strictyaml.Limits{}).Root()
			out.Contracts[key] = compare.Text{File: f.name, Root: old, Refused: true}
			continue
		case key == "":
			key = c.Action()
		}
		out.Contracts[key] = compare.Text{File: f.name, Root: root}
	}
	if lenient && len(refused) > 0 {
		out.Site = &compare.Site{File: e.siteName(), Refused: true}
	}
	return out, problems, nil
}

// readSite reads the edition's site file, nil where it has none or where it
// does not load.
func (e edition) readSite() (*actions.SiteText, actions.Problems, error) {
	if e.siteFiles == nil {
		return nil, nil, nil
	}
	path, done, err := e.siteFiles()
	if err != nil {
		return nil, nil, err
	}
	defer done()
	site, problems := actions.ReadSite(path)
	for i := range problems {
		if strings.HasPrefix(problems[i].File, path) {
			problems[i].File = e.siteName()
		}
	}
	return site, problems, nil
}

func (e edition) siteName() string { return e.name + "/" + siteFileName }
