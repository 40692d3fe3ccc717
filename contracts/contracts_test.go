// Package contracts_test plays every shipped fixture, lints every shipped
// contract, and lets one of them meet a product that no one here wrote. The
// folder is data and has no code; nothing imports it.
package contracts_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"chatelaine/internal/actions"
	"chatelaine/internal/contracttest"
)

const siteFile = "targets.yaml"

// shipped are the contracts of this release. A folder that is not named here,
// or a name without its folder, is a slip.
var shipped = []string{
	"acknowledge_incident", "close_issue", "create_annotation", "create_issue_comment",
	"create_merge_request", "create_pull_request", "create_refund", "create_silence",
	"create_ticket", "deploy_release", "get_alert_state", "get_check_conclusion",
	"get_deployment", "get_github_account", "get_gitlab_token", "get_image_digest",
	"get_issue_state", "get_job_health", "get_job_run", "get_pipeline_state", "get_rollout_state", "post_message",
	"put_config_value", "read_stock", "rerun_workflow", "resolve_issue",
	"restart_deployment", "review_status", "set_dns_record", "start_build",
	"sync_application", "tail_build_log", "transition_issue", "trigger_alert", "trigger_incident",
	"trigger_pipeline", "update_message", "update_text_file",
}

// loaded is the shipped set, read once: no test changes it.
var loaded = sync.OnceValues(func() (*actions.Set, actions.Problems) { return actions.LoadSet(siteFile, ".") })

func loadShipped(t *testing.T) *actions.Set {
	t.Helper()
	set, problems := loaded()
	if len(problems) > 0 {
		var text strings.Builder
		problems.Render(&text)
		t.Fatalf("the shipped set does not load:\n%s", text.String())
	}
	return set
}

// played is what the fixtures and their near-misses came to, played once for all
// tests.
var played = sync.OnceValues(func() (contracttest.Report, error) {
	return contracttest.Run(context.Background(), contracttest.Options{Site: siteFile, Contracts: ".", Mutate: true})
})

func playShipped(t *testing.T) contracttest.Report {
	t.Helper()
	report, err := played()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestShippedContractsLoad(t *testing.T) {
	set := loadShipped(t)
	var got []string
	for _, c := range set.Contracts() {
		got = append(got, c.Action())
	}
	if strings.Join(got, " ") != strings.Join(shipped, " ") {
		t.Errorf("loaded %v, shipped are %v", got, shipped)
	}
}

// Every target and identity of the example site file is used, so that the
// example teaches nothing dead.
func TestExampleSiteFileHasNothingUnused(t *testing.T) {
	set := loadShipped(t)
	targets, identities := map[string]bool{}, map[string]bool{}
	for _, c := range set.Contracts() {
		for _, name := range c.Targets() {
			targets[name] = true
		}
	}
	for _, target := range set.Targets() {
		if !targets[target.Name()] {
			t.Errorf("no contract reaches the target %s", target.Name())
		}
		identities[target.Identity()] = true
	}
	for _, id := range set.Identities() {
		if !identities[id.Name()] {
			t.Errorf("no target uses the identity %s", id.Name())
		}
	}
}

// The page beside the contracts names each of them once in its tables, with its
// own effect, and nothing that is not shipped.
func TestReadmeNamesEveryAction(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	set := loadShipped(t)
	rows := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | ")
		if !strings.HasPrefix(line, "| `") || !ok {
			continue
		}
		if _, twice := rows[name]; twice {
			t.Errorf("%s has two rows", name)
		}
		if _, known := set.Contract(name); !known {
			t.Errorf("there is no contract %s", name)
		}
		rows[name] = rest
	}
	for _, c := range set.Contracts() {
		if !slices.Contains(strings.Split(rows[c.Action()], " | "), c.Effect().String()) {
			t.Errorf("no row of %s says that it is a %s: %q", c.Action(), c.Effect(), rows[c.Action()])
		}
	}
}

func TestShippedContractsAreLintClean(t *testing.T) {
	set := loadShipped(t)
	for _, c := range set.Contracts() {
		for _, f := range actions.Lint(c, set) {
			t.Errorf("%s:%d:%d: %s: %s (%s)", f.File, f.Line, f.Column, f.Rule, f.Message, f.Hint)
		}
	}
}

// Each contract shows all four kinds: what is taken, what nearly is, what fails
// as declared, and what an enemy would send.
func TestEveryContractShipsAllKindsOfFixtures(t *testing.T) {
	for _, action := range shipped {
		for _, kind := range []string{"accepted", "near-miss", "failure", "hostile"} {
			files, err := filepath.Glob(filepath.Join(action, "fixtures", kind+"*.yaml"))
			if err != nil || len(files) == 0 {
				t.Errorf("%s ships no %s fixture", action, kind)
			}
		}
		all, err := os.ReadDir(filepath.Join(action, "fixtures"))
		if err != nil {
			t.Fatal(err)
		}
		if len(all) < 10 {
			t.Errorf("%s ships only %d fixtures", action, len(all))
		}
	}
}

// Every fixture, through the real loader, executor and validator against a real
// HTTPS server: what leaves is compared, and what comes back is judged.
func TestShippedFixturesPlay(t *testing.T) {
	report := playShipped(t)
	seen := map[string]bool{}
	for _, c := range report.Cases {
		seen[filepath.Clean(c.File)] = true
		if c.OK {
			continue
		}
		t.Errorf("%s (%s)\n  want %s\n  got  %s %s %s", c.File, c.Fixture, c.Want, c.Got, c.Layer, c.Reason)
		for _, d := range c.Diffs {
			t.Errorf("  %s: want %s, got %s", d.What, d.Want, d.Got)
		}
	}
	files, err := filepath.Glob("*/fixtures/*.yaml")
	old, err2 := filepath.Glob("*/fixtures/v*/*.yaml") // of shapes that a service had before
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if len(seen) != len(files)+len(old) || len(old) == 0 {
		t.Errorf("%d fixtures were played of %d and %d old ones", len(seen), len(files), len(old))
	}
}
