package actions

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/validate"
)

// Every plan that the fixtures of the shipped contracts lead to comes back from
// its bytes with the same digest, and everything that it sends stays under its
// target's base path.
func TestShippedPlans(t *testing.T) {
	set, problems := LoadSet("../../contracts/targets.yaml", "../../contracts")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range set.Contracts() {
		files, err := filepath.Glob(filepath.Join(c.Dir(), "fixtures", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		plans := 0
		for _, f := range files {
			p, ok := fixturePlan(t, set, c, f)
			if !ok {
				continue
			}
			plans++
			comesBack(t, set, f, p)
			staysBelow(t, f, p)
		}
		if plans == 0 {
			t.Errorf("%s: no fixture leads to a plan", c.Action())
		}
	}
}

// fixturePlan freezes the call of a fixture; its lookups are answered as the
// fixture says.
func fixturePlan(t *testing.T, set *Set, c *Contract, path string) (Plan, bool) {
	t.Helper()
	root := readFile(path, strictyaml.Limits{Bytes: maxFixtureFile}).Root()
	if root.Get("input") == nil {
		return Plan{}, false // a body beside the fixtures
	}
	in, err := c.ParseInput(root.Get("input").Value())
	if err != nil {
		return Plan{}, false
	}
	r, err := set.Resolve(c, in)
	if err != nil {
		return Plan{}, false
	}
	l, err := Begin(c, r, in, IdentityFact{r.Target().Identity(), 1}, testCall)
	if err != nil {
		return Plan{}, false
	}
	for name, more := l.Next(); more; name, more = l.Next() {
		captured, ok := lookedUp(t, l, root.Get("answers"), name, filepath.Dir(path))
		if !ok {
			return Plan{}, false
		}
		l = l.With(captured)
	}
	p, err := l.Freeze()
	return p, err == nil
}

func lookedUp(t *testing.T, l Looking, answers *strictyaml.Node, name, dir string) (map[string]any, bool) {
	t.Helper()
	s, err := l.Step(testNow)
	if err != nil || answers == nil {
		return nil, false
	}
	for _, a := range answers.Items {
		status, isStatus := intOf(a.Get("status").Value())
		if step := a.Get("step"); step == nil || step.Text != name || !isStatus {
			continue
		}
		raw := validate.Raw{Status: status, Header: http.Header{}}
		if h := a.Get("headers"); h != nil {
			for _, m := range h.Members {
				raw.Header.Add(m.Key, m.Value.Text)
			}
		}
		if b := a.Get("body"); b != nil {
			raw.Body = []byte(b.Text)
		}
		if b := a.Get("body_file"); b != nil {
			if raw.Body, err = os.ReadFile(filepath.Join(dir, b.Text)); err != nil {
				t.Fatal(err)
			}
		}
		proved, no := s.Reader().Prove(raw, s.Scope(), testNow)
		if no != nil {
			return nil, false
		}
		return proved.Captured()
	}
	return nil, false
}

func comesBack(t *testing.T, set *Set, name string, p Plan) {
	t.Helper()
	again, err := Thaw(set, p.Canonical())
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if again.Digest() != p.Digest() || !bytes.Equal(again.Canonical(), p.Canonical()) {
		t.Errorf("%s: another plan came back", name)
	}
	v, err := validate.Parse(p.Canonical(), KeptLimits())
	if err != nil || !bytes.Equal(validate.Canonical(v), p.Canonical()) {
		t.Errorf("%s: the canonical form does not parse to itself: %v", name, err)
	}
}

func staysBelow(t *testing.T, name string, p Plan) {
	t.Helper()
	r, err := p.Request(testNow)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	decoded, err := url.PathUnescape(r.WirePath())
	if err != nil || !strings.HasPrefix(decoded, r.Target().BasePath()+"/") || hasDotSegment(decoded) {
		t.Errorf("%s: %s", name, r.WirePath())
	}
}

// Whatever an answer put into a captured value, the paths that it stands in stay
// below the base path, and what is frozen comes back.
func FuzzCaptured(f *testing.F) {
	for _, s := range hostileNames {
		f.Add(s, s)
	}
	f.Add("0a1b2c3d", "r9")
	root := f.TempDir()
	site := filepath.Join(root, "targets.yaml")
	dir := filepath.Join(root, "contracts", "roll_out")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.Fatal(err)
	}
	for path, text := range map[string]string{site: stepsSite, filepath.Join(dir, contractFile): stepsContract(f)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	set, ps := LoadSet(site, filepath.Dir(dir))
	if len(ps) > 0 {
		f.Fatal(ps)
	}
	c := set.Contracts()[0]
	in, err := c.ParseInput(parseJSON(f, stepsInput))
	if err != nil {
		f.Fatal(err)
	}
	r, err := set.Resolve(c, in)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sha, id string) {
		l, err := Begin(c, r, in, IdentityFact{r.Target().Identity(), 1}, testCall)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.With(map[string]any{"id": id}).With(map[string]any{"sha": sha, "etag": `"` + sha + `"`}).Freeze()
		if err != nil {
			return
		}
		if s, err := p.Step(StepPoll, testNow, map[string]any{"id": id}); err == nil && !strings.HasPrefix(s.Request().WirePath(), "/api/v1/apps/") {
			t.Fatalf("%q", s.Request().WirePath())
		}
		staysBelow(t, id, p)
		for _, values := range p.built(t).header {
			for _, v := range values {
				if !validHeaderText(v) {
					t.Fatalf("header %q", v)
				}
			}
		}
		if again, err := Thaw(set, p.Canonical()); err != nil || again.Digest() != p.Digest() {
			t.Fatalf("%v", err)
		}
	})
}

func (p Plan) built(t *testing.T) Request {
	t.Helper()
	r, err := p.Request(testNow)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
