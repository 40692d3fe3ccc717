package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"chatelaine/internal/fault"
)

var update = flag.Bool("update", false, "write docs/cli.md from the command tree")

func quietApp() *app {
	return newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, func(string) string { return "" })
}

// everyCommand walks the tree, help included.
func everyCommand(f func(cmd *cobra.Command)) {
	root := quietApp().root()
	root.InitDefaultHelpCmd()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		f(cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// TestHelp reads every command's help: a short line, a long text and an example
// that names the command, and a sentence for every flag.
func TestHelp(t *testing.T) {
	everyCommand(func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || len(cmd.Short) > 80 {
			t.Errorf("%s: the short text must be one line without a full stop: %q", path, cmd.Short)
		}
		if len(cmd.Long) <= len(cmd.Short)/2 || !strings.ContainsAny(cmd.Long, ".:") {
			t.Errorf("%s: the long text says too little: %q", path, cmd.Long)
		}
		if !strings.HasPrefix(cmd.Example, "  ") || !strings.Contains(cmd.Example, "chatelaine") {
			t.Errorf("%s: the example must be indented and call chatelaine: %q", path, cmd.Example)
		}
		if cmd.Runnable() && cmd.Args == nil && cmd.Name() != "help" && cmd.Name() != "lint" && cmd.Name() != "test" {
			t.Errorf("%s: takes any arguments silently", path)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if len(f.Usage) < 10 {
				t.Errorf("%s --%s: no description", path, f.Name)
			}
			if secretFlag.MatchString(f.Name) {
				t.Errorf("%s --%s: no flag may take a secret", path, f.Name)
			}
		})
	})
}

// secretFlag matches names that would invite a secret as an argument; -fd only
// names a descriptor.
var secretFlag = regexp.MustCompile(`(?i)(secret|password|passphrase|token)($|[^-]|-[^f])`)

// parses runs the words of every chatelaine call in a shell line through the
// command line parser.
func parses(t *testing.T, where, line string) {
	t.Helper()
	for _, call := range exampleCalls(line) {
		root := quietApp().root()
		root.InitDefaultHelpCmd()
		found, rest, err := root.Find(call)
		if err == nil {
			err = found.ParseFlags(rest)
		}
		if err == nil {
			err = found.ValidateArgs(found.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: %q: %v", where, line, err)
		}
	}
}

// TestExamplesParse: an example that the program would refuse is worse than
// none.
func TestExamplesParse(t *testing.T) {
	everyCommand(func(cmd *cobra.Command) {
		for _, line := range strings.Split(cmd.Example, "\n") {
			parses(t, cmd.CommandPath(), line)
		}
	})
}

// TestDocumentedCommandsParse does the same for the shell lines of all pages.
func TestDocumentedCommandsParse(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fenced, begun := false, ""
		for i, line := range strings.Split(string(b), "\n") {
			line = begun + strings.TrimPrefix(strings.TrimSpace(line), "$ ")
			if begun = ""; strings.HasSuffix(line, "\\") { // goes on in the next line
				begun = strings.TrimSuffix(line, "\\")
				continue
			}
			if strings.HasPrefix(line, "```") {
				fenced = !fenced && (line == "```" || line == "```sh" || line == "```console" || line == "```bash")
				continue
			}
			if fenced && strings.HasPrefix(line, "chatelaine ") {
				seen++
				parses(t, fmt.Sprintf("%s:%d", filepath.Base(page), i+1), line)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d shell lines were found", seen)
	}
}

var (
	quoted   = regexp.MustCompile(`'[^']*'`)
	redirect = regexp.MustCompile(`^([0-9]?[<>].*|\|.*|&&)$`)
)

// exampleCalls are the argument lists of the chatelaine calls in a shell line.
func exampleCalls(line string) [][]string {
	line, _, _ = strings.Cut(line, " #")
	line = quoted.ReplaceAllString(line, "quoted")
	line = strings.NewReplacer("<(", " ", ")", "", ";", " && ").Replace(line)
	var out [][]string
	var now []string
	in := false
	for _, w := range append(strings.Fields(line), "&&") {
		switch {
		case w == "chatelaine":
			in, now = true, []string{}
		case redirect.MatchString(w):
			if in {
				out = append(out, now)
			}
			in = false
		case in:
			now = append(now, w)
		}
	}
	return out
}

// TestDocs holds docs/cli.md to the command tree; -update writes it.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "cli.md")
	want := cliPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/cli.md is not what the commands say; run: go test ./cmd/chatelaine -run TestDocs -update")
	}
}

const cliIntro = `# The command line

` + "`chatelaine`" + ` is what a person, an agent or a CI job types. This page is written from
the program's own help; a test keeps the two equal.

## How it behaves
- Results go to standard output. Everything else goes to standard error, begins with
  ` + "`chatelaine: `" + `, and says the way out after ` + "`hint: `" + `. A command that worked writes
  nothing there, except what to look at next: ` + "`status`" + ` names cards that wait.
- ` + "`--json`" + ` prints one JSON value for a program. Where a call was refused it is the
  daemon's envelope, and the exit code is the same as without it.
- Colour appears only on a terminal, and never where ` + "`NO_COLOR`" + ` is set.
- Text from elsewhere cannot steer the terminal: control characters and those that
  reorder text are shown as ` + "`\\u001b`" + `.
- No secret is an argument or in the environment. ` + "`identity put`" + ` reads the secret from
  the terminal without echo, twice, or from standard input (at most 16 KiB, one
  newline at the end is dropped). Passphrases are read from the terminal without echo
  or from a descriptor: ` + "`--proof-fd 3 3<FILE`" + `.
- Before the operator passphrase is asked at a terminal, the daemon's own sentence says
  what it covers. The passphrase is never used for anything else: where that changed
  while it was typed, the command says so and ends with exit code 5, nothing done.
- The program talks to a socket only if it belongs to the caller, to root, or to the
  user named by ` + "`--daemon-user`" + `; over TCP the owner of the port is asked first. So no
  token goes to somebody who was there before the daemon.

## Sessions of an agent
The first ` + "`call`" + ` of an agent asks for a session, prints its pairing code and ends with
exit code 3. The operator compares the code and types what was printed. The token is
kept in the runtime folder, ` + "`tokens/NAME.json`" + ` (0600), or in the caller's own XDG runtime
folder where the daemon is another user's. Each agent name has its own.

## Asking again
Each call has a request id; the program makes one where none is given, and prints it
where it matters. The same command with ` + "`--request-id ID`" + ` returns the recorded outcome
and never sends a second time.

## What --json prints
Lists are objects with one member: ` + "`actions`, `approvals`, `sessions`, `calls`, `identities`, `contracts`" + `. Their
elements, and what ` + "`status`, `actions ACTION`, `approvals ID`, `calls show`, `explain`, `unlock` and `lock`" + ` print,
have the members of the [HTTP API](http-api.md). ` + "`call`" + ` prints the envelope, or while a
session waits ` + "`{waiting_for, agent, session_id, pairing_code, authorize}`" + `. A decision prints the
card, or the thing's id and its new ` + "`state`" + `. ` + "`contract lint`" + ` prints ` + "`{contracts, findings}`" + `, each
finding with ` + "`file, line, column, rule, severity, message, hint, page`" + `; ` + "`contract test`" + ` prints ` + "`{cases, coverage, mutations}`" + `, each case
with ` + "`action, fixture, file, line, ok, want, got, layer, diffs`" + `; what ` + "`contract show`" + ` and ` + "`contract diff`" + ` print is in
[contract review](contract-review.md); ` + "`audit verify`" + ` prints the verifier's report;
` + "`audit activity`" + ` prints ` + "`{calls, refusals, complete}`" + `, ` + "`audit sessions`" + ` ` + "`{sessions, complete}`" + `, ` + "`audit export` and `audit follow --json`" + ` one event a
line; ` + "`complete`" + ` is false where the record is damaged; what
` + "`doctor`" + ` prints is in [operations](operations.md#what-a-hostile-program-could-do-here). New
members may come; none changes its meaning.

## Environment
| variable | is the default of |
|---|---|
`

// cliPage writes the page from the tree.
func cliPage() string {
	var b strings.Builder
	b.WriteString(cliIntro)
	for _, e := range [][2]string{{"CHATELAINE_CONFIG", "`--config`"}, {"CHATELAINE_STATE", "`--state`"}, {"CHATELAINE_RUNTIME", "`--runtime`"},
		{envDaemonUser, "`--daemon-user`"}, {envAgent, "`--agent`"}, {envAgentURL, "`--agent-url`"}} {
		fmt.Fprintf(&b, "| `%s` | %s |\n", e[0], e[1])
	}
	b.WriteString("\n## Exit codes\n| code | meaning |\n|---|---|\n")
	for _, e := range exitTable {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.text)
	}
	b.WriteString("\nOnly 3 and 5 are reasons to ask again. After 4 look at the remote system first.\n\n## Commands\n")
	everyCommand(func(cmd *cobra.Command) {
		if cmd.HasParent() {
			writeCommand(&b, cmd)
		}
	})
	b.WriteString("\n## Flags of every command\n")
	writeFlags(&b, quietApp().root().PersistentFlags())
	return b.String()
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n%s.\n\n", cmd.CommandPath(), cmd.Short)
	if cmd.Name() != "exit-codes" {
		fmt.Fprintf(b, "    %s\n\n%s\n", strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.Long)
	}
	fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	writeFlags(b, cmd.LocalNonPersistentFlags())
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	rows := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		if rows++; rows == 1 {
			b.WriteString("\n| flag | meaning |\n|---|---|\n")
		}
		arg := ""
		if f.Value.Type() != "bool" {
			arg = " " + strings.ToUpper(f.Value.Type())
		}
		fmt.Fprintf(b, "| `--%s%s` | %s |\n", f.Name, arg, f.Usage)
	})
}

// TestLinksNoVault asks the go command: this program stands on the near side of
// the wall.
func TestLinksNoVault(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "chatelaine/cmd/chatelaine").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 50 {
		t.Fatalf("go list named only %d packages", len(deps))
	}
	for _, d := range deps {
		switch d {
		case "chatelaine/internal/vault", "chatelaine/internal/gateway", "chatelaine/internal/approvals", "chatelaine/internal/ledger",
			"chatelaine/internal/sessions", "chatelaine/internal/operatorapi", "chatelaine/internal/agentapi", "chatelaine/internal/testkit",
			"github.com/zalando/go-keyring":
			t.Errorf("chatelaine links %s", d)
		}
	}
}

// TestExitCodes holds the table of codes to the program.
func TestExitCodes(t *testing.T) {
	cases := []struct {
		code      string
		retryable bool
		change    bool
		want      int
	}{
		{"INVALID_ARGUMENT", false, true, 2}, {"UNKNOWN_ACTION", false, false, 2},
		{"SESSION_PENDING", true, false, 3}, {"APPROVAL_REQUIRED", true, true, 3}, {"IN_PROGRESS", true, true, 3},
		{"OUTCOME_UNKNOWN", false, true, 4}, {"INVALID_RESPONSE", false, true, 4}, {"INVALID_RESPONSE", false, false, 1},
		{"INTERNAL", false, true, 4}, {"INTERNAL", false, false, 1},
		{"VAULT_LOCKED", true, false, 5}, {"OVERLOADED", true, false, 5}, {"AUDIT_UNAVAILABLE", true, true, 5},
		{"UPSTREAM_UNAVAILABLE", true, true, 5}, {"REMOTE_RATE_LIMITED", true, false, 5}, {"PROOF_TOO_SOON", false, false, 5},
		{"CHALLENGE_EXPIRED", false, false, 5}, {"APPROVAL_EXPIRED", true, true, 5},
		{"APPROVAL_DENIED", false, true, 1}, {"CANCELLED", false, true, 1}, {"DUPLICATE_REQUEST", false, true, 1},
		{"TARGET_NOT_ALLOWED", false, true, 1}, {"NOT_FOUND", false, false, 1}, {"REMOTE_FORBIDDEN", false, false, 1},
		{"PROOF_REFUSED", false, false, 1}, {"ALREADY_DECIDED", false, false, 1}, {"SOME_OWN_CODE", false, true, 1},
	}
	for _, c := range cases {
		if got := exitOf(fault.Code(c.code), c.retryable, c.change); got != c.want {
			t.Errorf("%s (change %v): exit %d, want %d", c.code, c.change, got, c.want)
		}
	}
	topic := exitCodesTopic().Long
	for _, e := range exitTable {
		if !strings.Contains(topic, fmt.Sprintf("%3d  %s\n", e.code, e.text)) {
			t.Errorf("help exit-codes does not tell %d", e.code)
		}
	}
}
