package release

import (
	"context"
	"crypto/tls"
	"encoding/json/v2"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/testkit"
)

const (
	testToken = "rel-test-0123456789abcdef"
	prodToken = "rel-prod-0123456789abcdef"
)

func start(t *testing.T) *Service {
	t.Helper()
	s, err := Start(map[string]string{"test": testToken, "production": prodToken})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

type reply struct {
	status int
	body   string
}

// ask sends one request over real TLS. header has "Name: value" lines.
func ask(t *testing.T, s *Service, method, path, body string, header ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "https://"+s.Address()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Pool()}, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, string(b)}
}

const (
	releases = "/test/v1/apps/api/releases"
	json1    = "Content-Type: application/json"
	auth     = "Authorization: Bearer " + testToken
	key1     = "Idempotency-Key: key-1"
	order1   = `{"version":"2.14.3","reason":"fixes retries"}`
)

func TestCreateOnceForAKey(t *testing.T) {
	s := start(t)
	first := ask(t, s, "POST", releases, order1, json1, auth, key1)
	var r report
	if err := json.Unmarshal([]byte(first.body), &r); err != nil || first.status != 201 {
		t.Fatalf("%d %s %v", first.status, first.body, err)
	}
	if r.Project != "shop-api" || r.Environment != "test" || r.Version != "2.14.3" || r.State != "queued" || !strings.HasPrefix(r.ID, "dep_") {
		t.Errorf("the report is %+v", r)
	}
	if again := ask(t, s, "POST", releases, order1, json1, auth, key1); again.status != 200 || !strings.Contains(again.body, r.ID) {
		t.Errorf("the same key: %d %s", again.status, again.body)
	}
	if other := ask(t, s, "POST", releases, `{"version":"2.14.4","reason":"fixes retries"}`, json1, auth, key1); other.status != 422 {
		t.Errorf("the same key for another version: %d %s", other.status, other.body)
	}
	if next := ask(t, s, "POST", releases, order1, json1, auth, "Idempotency-Key: key-2"); next.status != 201 || strings.Contains(next.body, r.ID) {
		t.Errorf("another key: %d %s", next.status, next.body)
	}
	look := ask(t, s, "GET", releases+"/"+r.ID, "", auth)
	if look.status != 200 || !strings.Contains(look.body, `"state":"healthy"`) {
		t.Errorf("a look: %d %s", look.status, look.body)
	}
	got := s.Received()
	if len(got) != 5 || got[0].Version != "2.14.3" || got[0].Key != "key-1" || !got[0].Authorised || string(got[0].Answer) != first.body {
		t.Errorf("received %d: %+v", len(got), got[0])
	}
	if !strings.Contains(string(got[0].Raw), testToken) {
		t.Error("what arrived is not kept as it was")
	}
}

func TestRefusals(t *testing.T) {
	s := start(t)
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		want               int
	}{
		"no token":             {"POST", releases, order1, []string{json1, key1}, 401},
		"wrong token":          {"POST", releases, order1, []string{json1, key1, auth + "x"}, 401},
		"another environment":  {"POST", "/production/v1/apps/api/releases", order1, []string{json1, key1, auth}, 401},
		"unknown environment":  {"POST", "/stage/v1/apps/api/releases", order1, []string{json1, key1, "Authorization: Bearer "}, 401},
		"token without scheme": {"POST", releases, order1, []string{json1, key1, "Authorization: " + testToken}, 401},
		"no key":               {"POST", releases, order1, []string{json1, auth}, 400},
		"long key":             {"POST", releases, order1, []string{json1, auth, "Idempotency-Key: " + strings.Repeat("k", keyLimit+1)}, 400},
		"not JSON":             {"POST", releases, `version=1`, []string{json1, auth, key1}, 400},
		"wrong media type":     {"POST", releases, order1, []string{"Content-Type: text/plain", auth, key1}, 400},
		"unknown member":       {"POST", releases, `{"version":"1.0.0","reason":"r","force":true}`, []string{json1, auth, key1}, 400},
		"no such version":      {"POST", releases, `{"version":"latest","reason":"r"}`, []string{json1, auth, key1}, 422},
		"no such app":          {"POST", "/test/v1/apps/billing/releases", order1, []string{json1, auth, key1}, 404},
		"no such deployment":   {"GET", releases + "/dep_00000000", "", []string{auth}, 404},
		"another path":         {"GET", "/", "", []string{auth}, 404},
		"another method":       {"DELETE", releases + "/dep_00000000", "", []string{auth}, 405},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(t, s, c.method, c.path, c.body, c.header...); got.status != c.want {
				t.Errorf("%d %s, want %d", got.status, got.body, c.want)
			}
		})
	}
	if len(s.byID) != 0 {
		t.Errorf("%d deployments were started", len(s.byID))
	}
}

func TestLies(t *testing.T) {
	s := start(t)
	for name, c := range map[string]struct {
		lie  Lie
		want func(body string) bool
	}{
		"banner":    {MaintenanceBanner, func(b string) bool { return strings.Contains(b, `"state":"`+Banner+`"`) }},
		"duplicate": {DuplicateMember, func(b string) bool { return strings.Count(b, `"state":`) == 2 }},
		"project":   {WrongProject, func(b string) bool { return strings.Contains(b, `"project_id":"shop-billing"`) }},
		"stale": {StaleTime, func(b string) bool {
			var r report
			_ = json.Unmarshal([]byte(b), &r)
			at, err := time.Parse(time.RFC3339, r.Observed)
			return err == nil && time.Since(at) > time.Hour
		}},
		"echo":   {EchoedToken, func(b string) bool { return strings.Contains(b, testToken) }},
		"huge":   {HugeBody, func(b string) bool { return len(b) > hugeBytes }},
		"deep":   {DeepBody, func(b string) bool { return strings.Count(b, "[") == deepLevel && strings.Count(b, "]") == deepLevel }},
		"honest": {Honest, func(b string) bool { return strings.Contains(b, `"state":"queued"`) }},
	} {
		t.Run(name, func(t *testing.T) {
			s.Switch(c.lie)
			got := ask(t, s, "POST", releases, order1, json1, auth, "Idempotency-Key: "+name)
			if got.status != 201 || !c.want(got.body) {
				t.Errorf("%d %.200s", got.status, got.body)
			}
		})
	}
}

func TestSilentNeverAnswersAndCloses(t *testing.T) {
	s := start(t)
	s.Switch(Silent)
	ended := make(chan error, 1)
	go func() {
		req, err := http.NewRequest("POST", "https://"+s.Address()+releases, strings.NewReader(order1))
		if err != nil {
			ended <- err
			return
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+testToken)
		req.Header.Set("Idempotency-Key", "silent")
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.Pool()}}}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	testkit.Until(t, "the request", func() bool { return len(s.Received()) > 0 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a silent service has answered")
	}
	if r := s.Received()[0]; r.Status != 0 || !r.Authorised {
		t.Errorf("noted %+v", r)
	}
}

func TestStartRefusesAnOpenEnvironment(t *testing.T) {
	if s, err := Start(map[string]string{"test": ""}); err == nil {
		_ = s.Close()
		t.Error("an environment without a token was served")
	}
}

func TestStrangersDoNotTrustIt(t *testing.T) {
	s := start(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Get("https://" + s.Address() + releases); err == nil {
		_ = resp.Body.Close()
		t.Error("a client without the authority got an answer")
	}
}
