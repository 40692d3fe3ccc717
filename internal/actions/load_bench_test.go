package actions

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"chatelaine/internal/actions/strictyaml"
)

// manyContracts is how many contracts the benchmark loads: the most of one set.
const manyContracts = maxContracts

// BenchmarkLoadSet loads 1,000 contracts that all differ: the shipped
// deploy_release under other names, with other enums, patterns and bounds. It
// tells contracts per second of the clock, the aim being all of them in one, and
// per second of processor time, which a busy machine does not change much. Its
// baseline, yaml/cpu-s, is reading the same files with the strict reader alone.
//
// "start" is how a daemon loads its first set: it collects garbage less often.
func BenchmarkLoadSet(b *testing.B) {
	site, dir := writeMany(b, manyContracts)
	b.Run("start", func(b *testing.B) { benchmarkLoad(b, LoadSetAtStart, site, dir) })
	b.Run("reload", func(b *testing.B) { benchmarkLoad(b, LoadSet, site, dir) })
}

func benchmarkLoad(b *testing.B, load func(site, dir string) (*Set, Problems), site, dir string) {
	b.ReportAllocs()
	used := cpuTime(b)
	for b.Loop() {
		set, ps := load(site, dir)
		if len(ps) > 0 || len(set.contracts) != manyContracts {
			b.Fatal(len(ps), ps[:min(len(ps), 3)])
		}
	}
	used = cpuTime(b) - used
	b.ReportMetric(float64(b.N)*manyContracts/b.Elapsed().Seconds(), "contracts/s")
	b.ReportMetric(float64(b.N)*manyContracts/used.Seconds(), "contracts/cpu-s")
	start := cpuTime(b)
	for i := range manyContracts {
		if readFile(filepath.Join(dir, manyName(i), contractFile), strictyaml.Limits{}).Root() == nil {
			b.Fatal("a file that cannot be read")
		}
	}
	b.ReportMetric(manyContracts/(cpuTime(b)-start).Seconds(), "yaml/cpu-s")
}

// A program that loads at its start leaves the collector as it found it.
func TestLoadSetAtStart(t *testing.T) {
	site, dir := writeMany(t, 2)
	for _, percent := range []int{100, 70} {
		was := debug.SetGCPercent(percent)
		set, ps := LoadSetAtStart(site, dir)
		if after := debug.SetGCPercent(was); after != percent {
			t.Errorf("GOGC was %d and is %d", percent, after)
		}
		if len(ps) > 0 || len(set.contracts) != 2 {
			t.Error(ps)
		}
	}
}

// A full set loads, and every contract keeps its own schemas: nothing that is
// kept between contracts may mix two of them up.
func TestLoadMany(t *testing.T) {
	const n = 12
	site, dir := writeMany(t, n)
	set, ps := LoadSet(site, dir)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	for i := range n {
		c, ok := set.Contract(manyName(i))
		if !ok {
			t.Fatalf("%s is not there", manyName(i))
		}
		for j := range n {
			_, err := c.ParseInput(parseJSON(t, fmt.Sprintf(`{"service":"api%d","environment":"test","version":"2.14.3","reason":"fixes retries"}`, j)))
			if (err == nil) != (i == j) {
				t.Errorf("%s takes the service of contract %d: %v", manyName(i), j, err)
			}
		}
	}
}

func manyName(i int) string { return fmt.Sprintf("deploy_release_%04d", i) }

// writeMany lays n contracts and a site file into a folder.
func writeMany(tb testing.TB, n int) (site, dir string) {
	tb.Helper()
	text, err := os.ReadFile("../../contracts/deploy_release/contract.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	root := tb.TempDir()
	dir = filepath.Join(root, "contracts")
	names := make([]string, n)
	for i := range n {
		names[i] = manyName(i)
		one := strings.NewReplacer(
			"action: deploy_release", "action: "+names[i],
			"enum: [api, worker]", fmt.Sprintf("enum: [api%d, worker%d]", i, i),
			"service: api,", fmt.Sprintf("service: api%d,", i), "service: worker,", fmt.Sprintf("service: worker%d,", i),
			"^dep_[a-z0-9]{8,32}$", fmt.Sprintf("^dep%d_[a-z0-9]{8,32}$", i), "maxLength: 36", "maxLength: 40",
			"maxLength: 4000", fmt.Sprintf("maxLength: %d", 4000+i),
		).Replace(string(text))
		if err := os.MkdirAll(filepath.Join(dir, names[i]), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, names[i], contractFile), []byte(one), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	site = filepath.Join(root, "targets.yaml")
	actions := strings.Join(names, ", ")
	sites := fmt.Sprintf(`targets:
  deploy-test: {url: "https://deploy.test.example", identity: bot, actions: [%s], effects: [read, change], ask: session}
  deploy-prod: {url: "https://deploy.prod.example", identity: bot, actions: [%s], effects: [read, change], ask: every_call}
identities:
  bot: {kind: bearer}
`, actions, actions)
	if err := os.WriteFile(site, []byte(sites), 0o644); err != nil {
		tb.Fatal(err)
	}
	return site, dir
}
