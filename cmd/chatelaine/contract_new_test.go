package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// says answers a question that is asked with the echo on.
func (x *terminal) says(question, answer string) {
	x.t.Helper()
	x.expect(question)
	if _, err := x.ptm.WriteString(answer + "\n"); err != nil {
		x.t.Fatal(err)
	}
}

func TestTerminalContractNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "contracts")
	x := atTerminal(t, t.TempDir(), nil, nil, "contract", "new", "get_release", "--contracts", dir, "--owner", "ops")
	x.says(`does it read, change or destroy\? \[read\]: `, "look")
	x.expect(`"look" is none of read, change, destroy`)
	x.says(`does it read, change or destroy\? \[read\]: `, "")
	x.says(`which service\? the name of its target \[service\]: `, "releases")
	x.says(`which method\? \[GET\]: `, "")
	x.says(`which path\? \{NAME\} stands for an input \[/get_release\]: `, "/v1/releases/{id}")
	x.says(`what does it do, in one sentence for an agent\? \[Get release\.\]: `, strings.Repeat("y", 201))
	x.expect(`the summary has 201 characters, and a contract takes 200`)
	x.says(`for an agent\? \[Get release\.\]: `, "Tell the state of one release.")
	x.says(`the input id stands in the path; its kind\? \[word=64\]: `, "word=lots")
	x.expect(`"lots" is no bound from 1 to 128`)
	x.says(`its kind\? \[word=64\]: `, "text=20")
	x.expect(`what stands in a path is a word`)
	x.says(`its kind\? \[word=64\]: `, "")
	x.says(`another input\? [^\n]*: `, "callback_url:word")
	x.expect(`the input "callback_url" contains the word "url"`)
	x.says(`another input\? [^\n]*: `, "verbose?:yesno")
	x.says(`another input\? [^\n]*: `, "")
	x.says(`what comes back\? [^\n]*: `, "state")
	x.expect(`"state" says no kind`)
	x.says(`what comes back\? [^\n]*: `, "state:choice=queued|healthy")
	x.says(`what comes back\? [^\n]*: `, "")
	x.expect(`get_release is written: contract\.yaml and \d+ fixtures`)
	x.expect(`actions: \[get_release\]`)
	x.ends(exitDone)
	b, err := os.ReadFile(filepath.Join(dir, "get_release", "contract.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"summary: Tell the state of one release.", "owner: ops", "path: /v1/releases/{input.id}", "verbose: {type: boolean}", "enum: [queued, healthy]"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the contract has no %q:\n%s", want, b)
		}
	}
}

func TestTerminalContractNewGivesUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "contracts")
	x := atTerminal(t, t.TempDir(), nil, nil, "contract", "new", "get_release", "--contracts", dir)
	for range askTries {
		x.says(`does it read, change or destroy\? \[read\]: `, "look")
	}
	x.expect(`no answer that can be taken; nothing was done`)
	x.ends(exitUsage)
	x = atTerminal(t, t.TempDir(), nil, nil, "contract", "new", "get_release", "--contracts", dir)
	x.expect(`\[read\]: `)
	if _, err := x.ptm.WriteString("\x04"); err != nil {
		t.Fatal(err)
	}
	x.expect(`nothing was typed; nothing was done`)
	x.ends(exitUsage)
	x = atTerminal(t, t.TempDir(), nil, nil, "contract", "new", "get_release", "--contracts", dir)
	x.expect(`\[read\]: `)
	if _, err := x.ptm.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	x.expect(`[\r\n][^\r\n]*interrupted`)
	x.ends(exitInterrupted)
	if _, err := os.Lstat(dir); err == nil {
		t.Error("something was written")
	}
}

// Nobody answers questions for a folder that is there, or beside a wrong flag; and
// the flags are wrong for any folder.
func TestTerminalContractNewAsksNothingInVain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "contracts")
	if err := os.MkdirAll(filepath.Join(dir, "get_release"), 0o700); err != nil {
		t.Fatal(err)
	}
	x := atTerminal(t, t.TempDir(), nil, nil, "contract", "new", "get_release", "--contracts", dir)
	x.expect(`is there already`)
	x.ends(exitRefused)
	if strings.Contains(x.text(), "]: ") {
		t.Errorf("somebody was asked:\n%s", x.text())
	}
	x = atTerminal(t, t.TempDir(), nil, nil, "contract", "new", "get_release", "--contracts", dir, "--effect", "look", "--input", "id", "--summary", strings.Repeat("y", 201))
	x.expect(`"look" is none of read, change, destroy`)
	x.ends(exitUsage)
	if text := x.text(); strings.Contains(text, "]: ") || !strings.Contains(text, `"id" says no kind`) || !strings.Contains(text, "201 characters") {
		t.Errorf("asked, or not told:\n%s", text)
	}
}

// A description asks nothing, also at a terminal.
func TestTerminalContractNewFromADescriptionAsksNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "contracts")
	file := filepath.Join("..", "..", "internal", "actions", "scaffold", "openapi", "testdata", "ticket-service.json")
	x := atTerminal(t, t.TempDir(), nil, nil, "contract", "new", "create_ticket", "--contracts", dir, "--openapi", file, "--operation", "createTicket")
	x.expect(`create_ticket is written`)
	x.ends(exitDone)
	if strings.Contains(x.text(), "?: ") || strings.Contains(x.text(), "]: ") {
		t.Errorf("somebody was asked:\n%s", x.text())
	}
}
