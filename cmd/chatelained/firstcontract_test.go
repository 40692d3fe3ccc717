package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/testkit"
)

// firstService is the release service of docs/first-contract.md.
func firstService(r upstream.Request) upstream.Answer {
	if r.Method == "GET" {
		return upstream.JSON(200, `{"id":"rel_8f2k1m9q","state":"healthy","created_at":"2026-01-05T10:00:02Z","notes":"all parts answer"}`)
	}
	return upstream.JSON(201, fmt.Sprintf(`{"id":"rel_8f2k1m9q","version":%q,"state":"queued"}`, versionOf(r)))
}

// firstShows is what a person sees after a command of the page, by its beginning.
var firstShows = map[string][]string{
	"cat suggested.yaml":                    {"For you to decide", "actions: [get_release]", "releases-bot: {kind: bearer}"},
	`cat "$CHATELAINE_CONFIG/contracts/`:    {"contract: v1", "path: /v1/releases/{input.id}"},
	"chatelaine contract schema":            {"contract.schema.json"},
	"chatelaine contract show":              {"get_release"},
	"chatelaine call get_release":           {"rel_8f2k1m9q", "healthy", "2026-01-05T10:00:02Z", "all parts answer"},
	"chatelaine contract new create_":       {"callback_url", "CONFLICT", "Idempotency-Key"},
	"chatelaine approve":                    {"Create release: version 2.14.3", "Fixes the retry loop"},
	"chatelaine call create_release --wait": {"rel_8f2k1m9q", "queued"},
}

// TestFirstContract types docs/first-contract.md into a shell at a terminal, as
// TestReadme does with the README: every command of the page runs.
func TestFirstContract(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/first-contract.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t, firstService)
	typed, shown := 0, 0
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for _, command := range commandsOf(block[1]) {
			if !notTyped[command] {
				shown += s.followFirst(command)
				typed++
			}
		}
	}
	if typed < 20 || shown != len(firstShows) {
		t.Errorf("%d commands were typed, and %d of %d were looked at", typed, shown, len(firstShows))
	}
	testkit.Plant(planted).Refuse(t, "what the terminal showed", []byte(s.text()))
	for _, r := range s.up.Requests() {
		if r.Method == "POST" && (r.Header().Get("Idempotency-Key") == "" || string(r.Body) != `{"reason":"Fixes the retry loop","version":"2.14.3"}`) {
			t.Errorf("what left: %s\n%v", r.Body, r.Header())
		}
	}
	if n := len(s.up.Requests()); n != 2 {
		t.Errorf("%d requests left, want one of each action", n)
	}
}

// followFirst types a command of the page and looks at what it shows; it returns
// how many of firstShows it was.
func (s *shell) followFirst(command string) int {
	s.t.Helper()
	want, name := "0", command
	switch {
	case strings.HasPrefix(command, "chatelaine contract lint"):
		s.putAddressesIn()
	case strings.Contains(command, "SESSION_ID"):
		command = strings.Replace(command, "SESSION_ID", s.session, 1)
	case strings.Contains(command, "APPROVAL_ID"):
		command = strings.Replace(command, "APPROVAL_ID", cardID.FindString(s.run("chatelaine approvals", "0")), 1)
	case strings.HasPrefix(command, "chatelaine session start"):
		want = "3" // it waits for a person
	case strings.HasPrefix(command, "chatelaine call create_release") && strings.Contains(command, "--wait"):
		name = "chatelaine call create_release --wait"
	case strings.HasPrefix(command, "chatelaine call create_release"):
		want = "3"
	}
	out := s.run(command, want)
	if id := sessionID.FindString(out); id != "" {
		s.session = id
	}
	if strings.HasPrefix(command, "chatelained serve") {
		s.waitFor(filepath.Join(s.home, "chatelaine", "run", "operator.sock"))
	}
	looked := 0
	for begin, texts := range firstShows {
		if !strings.HasPrefix(name, begin) {
			continue
		}
		looked++
		for _, text := range texts {
			if !strings.Contains(out, text) {
				s.t.Errorf("%s\ndoes not show %q:\n%s", command, text, out)
			}
		}
	}
	return looked
}
