package contracts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/actions"
)

// shape is one of the hard ways in which services ask and answer, and the
// shipped contract to read for it.
type shape struct {
	name   string
	action string
	holds  []string // texts of its contract.yaml
	shown  string   // the fixture that shows it
	steps  func(*actions.Contract) bool
}

func reconciles(c *actions.Contract) bool { return c.HasReconcile() }

func polls(c *actions.Contract) bool {
	_, ok := c.Poll()
	return ok
}

var shapes = []shape{
	{"a create that is found again by its natural key", "create_pull_request", []string{"method: POST", "took_effect: true"}, "accepted-found-again.yaml", reconciles},
	{"a create that is found again by its call's id", "create_annotation", []string{"{from: call.id}", "took_effect: true"}, "accepted-found-again.yaml", reconciles},
	{"200 with ok: false", "post_message", []string{"equals: [/ok, false]"}, "failure-*.yaml", nil},
	{"a GraphQL mutation", "create_ticket", []string{"query:", "mutation", "variables:"}, "accepted.yaml", nil},
	{"a merge patch and a rollout", "restart_deployment", []string{"content_type: application/merge-patch+json", "/status/observedGeneration", "pending: true"}, "accepted.yaml", polls},
	{"a compare-and-set write", "put_config_value", []string{"cas: {from: entry.version}", "increased:"}, "failure-changed.yaml", reconciles},
	{"a compare-and-set write by a digest", "update_text_file", []string{"sha: {from: file.sha}"}, "failure-changed.yaml", reconciles},
	{"a form with brackets", "create_refund", []string{"form:"}, "accepted.yaml", nil},
	{"204", "set_dns_record", []string{"status: 204", "media: none"}, "accepted.yaml", polls},
	{"a result from headers", "get_image_digest", []string{"method: HEAD", "header: Docker-Content-Digest"}, "accepted.yaml", nil},
	{"a place in a header", "start_build", []string{"header: Location, last_segment: true"}, "near-miss-other-host.yaml", polls},
	{"a log of plain text", "tail_build_log", []string{"media: text", "display:"}, "hostile-words.yaml", nil},
	{"an array at the top", "get_pipeline_state", []string{`find: {in: ""`}, "accepted.yaml", nil},
	{"one bare word as the whole answer", "put_config_value", []string{`equals: ["", true]`, `equals: ["", false]`}, "near-miss-text-true.yaml", nil},
	{"nanoseconds since 1970", "get_job_health", []string{"time: unix_nanos"}, "accepted.yaml", nil},
	{"milliseconds since 1970", "start_build", []string{"time: unix_millis"}, "near-miss-old-place.yaml", nil},
	{"202 that is no success", "rerun_workflow", []string{"status: 202", "capture:"}, "failure-again.yaml", polls},
	{"201 that is no success", "trigger_pipeline", []string{"status: 201", "capture:", "at_most_once:"}, "failure-failed.yaml", polls},
	{"counts that are left out where they are zero", "get_rollout_state", []string{"absent: 0"}, "accepted-none-available.yaml", nil},
	{"a PUT that may be repeated", "resolve_issue", []string{"natural: true"}, "accepted-lost.yaml", nil},
}

// The shipped set has a contract to read for every hard shape, and a fixture
// that shows it.
func TestEveryHardShapeHasAContract(t *testing.T) {
	set := loadShipped(t)
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			c, ok := set.Contract(s.action)
			if !ok {
				t.Fatalf("there is no %s", s.action)
			}
			text, err := os.ReadFile(filepath.Join(s.action, "contract.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range s.holds {
				if !strings.Contains(string(text), want) {
					t.Errorf("%s does not hold %q", s.action, want)
				}
			}
			if s.steps != nil && !s.steps(c) {
				t.Errorf("%s has not the steps for it", s.action)
			}
			if files, err := filepath.Glob(filepath.Join(s.action, "fixtures", s.shown)); err != nil || len(files) == 0 {
				t.Errorf("%s has no fixture %s", s.action, s.shown)
			}
		})
	}
}

// An author finds an example for the service at hand, or one like it.
func TestShippedSetIsWide(t *testing.T) {
	const wantActions, wantServices = 24, 10
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(b), "\n## Services\n")
	if !ok {
		t.Fatal("the page has no table of services")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	actions, services := 0, map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) > 1 {
			actions++
			services[cells[1]] = true
		}
	}
	if actions < wantActions || len(services) < wantServices {
		t.Errorf("%d actions on %d services, want %d on %d", actions, len(services), wantActions, wantServices)
	}
}
