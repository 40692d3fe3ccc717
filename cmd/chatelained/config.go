package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions/strictyaml"
	"chatelaine/internal/client"
)

// Config is chatelaine.yaml, read strictly, with its defaults filled in.
type Config struct {
	AgentTCP   int // port on both loopbacks, 0: off
	MetricsTCP int // port on both loopbacks, 0: off

	Backend        string // file or keychain
	GenerationFile string
	vaultLocks
	Sources []sourceConfig // by name

	Calls, CallsPerTarget int
	AnswerBytes           int64

	SessionLife, SessionIdle time.Duration
	CardLife                 time.Duration
	LedgerKeep               time.Duration

	Notify []string // argv, run when a card opens
	Alert  []string // argv, run when an answer is refused

	AgentUsers  []uint32
	AgentGroups []int
	names       map[string]string // how agents were written, for `config`

	LogLevel, LogFormat string

	from map[string]string // key → where its value came from
}

// Defaults (docs/configuration.md says why each is what it is).
const (
	defaultAgentPort  = 7317
	metricsPortAdvice = 7319
	defaultCalls      = 64
	defaultPerTarget  = 8
	defaultAnswer     = 1 << 20
	defaultSession    = 8 * time.Hour
	defaultIdle       = 30 * time.Minute
	defaultCard       = 5 * time.Minute
	defaultKeep       = 30 * 24 * time.Hour
	configLimit       = 64 << 10
)

const configName = "chatelaine.yaml"

func defaultConfig() Config {
	return Config{
		AgentTCP: defaultAgentPort, Backend: "file",
		Calls: defaultCalls, CallsPerTarget: defaultPerTarget, AnswerBytes: defaultAnswer,
		SessionLife: defaultSession, SessionIdle: defaultIdle, CardLife: defaultCard, LedgerKeep: defaultKeep,
		vaultLocks: vaultLocks{OnWake: true, WarnBefore: defaultWarnBefore},
		LogLevel:   "info", LogFormat: "text",
		from: map[string]string{}, names: map[string]string{},
	}
}

// loadConfig reads chatelaine.yaml. A missing file means the defaults; a file
// that is wrong in one place is refused whole.
func loadConfig(p client.Places) (Config, error) {
	c := defaultConfig()
	path := filepath.Join(p.Config, configName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, usageError{fmt.Errorf("configuration: %w", err)}
	}
	f := strictyaml.Parse(path, b, strictyaml.Limits{Bytes: configLimit})
	if n := f.Root(); n != nil && n.Kind != strictyaml.Null {
		(&reader{f: f, c: &c}).all(n)
	}
	if problems := f.Problems(); len(problems) > 0 {
		var out strings.Builder
		problems.Render(&out)
		return c, usageError{fmt.Errorf("%s in %s\n%s", mistakes(len(problems)), path, strings.TrimRight(out.String(), "\n"))}
	}
	return c, nil
}

// reader decodes the file section by section.
type reader struct {
	f *strictyaml.File
	c *Config
}

func (r *reader) all(n *strictyaml.Node) {
	if !r.f.Map(n, "the file", "listen", "vault", "limits", "sessions", "approvals", "ledger", "notify", "alert", "agents", "log") {
		return
	}
	r.listen(n.Get("listen"))
	r.vault(n.Get("vault"))
	r.limits(n.Get("limits"))
	r.lives(n)
	r.agents(n.Get("agents"))
	r.log(n.Get("log"))
	r.program(n.Get("notify"), "notify", &r.c.Notify)
	r.program(n.Get("alert"), "alert", &r.c.Alert)
	r.vaultIdle(n.Get("vault"))
}

func (r *reader) said(key string) { r.c.from[key] = r.f.Name() }

func (r *reader) listen(n *strictyaml.Node) {
	if n == nil || !r.f.Map(n, "listen", "agent_tcp", "metrics_tcp") {
		return
	}
	r.port(n.Get("agent_tcp"), "listen.agent_tcp", defaultAgentPort, &r.c.AgentTCP)
	r.port(n.Get("metrics_tcp"), "listen.metrics_tcp", metricsPortAdvice, &r.c.MetricsTCP)
}

// port reads off or a loopback address with a port. Only loopback is ever
// served, so any other address is refused here.
func (r *reader) port(n *strictyaml.Node, key string, advice int, into *int) {
	if n == nil {
		return
	}
	if n.Kind == strictyaml.Bool && !n.Truth {
		*into = 0
		r.said(key)
		return
	}
	s, ok := r.f.Text(n, key)
	if !ok {
		return
	}
	r.said(key)
	if s == "off" {
		*into = 0
		return
	}
	ap, err := netip.ParseAddrPort(s)
	if err != nil || ap.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) || ap.Port() == 0 {
		r.f.Report(n.Pos, "listen", fmt.Sprintf("write off, or 127.0.0.1:%d", advice), "%s must be off or 127.0.0.1 with a port: only loopback is served", key)
		return
	}
	*into = int(ap.Port())
}

func (r *reader) vault(n *strictyaml.Node) {
	if n == nil || !r.f.Map(n, "vault", append([]string{"backend", "generation_file", "sources"}, vaultLockKeys...)...) {
		return
	}
	r.vaultLocks(n)
	r.sources(n.Get("sources"))
	if v := n.Get("backend"); v != nil {
		if s, ok := r.f.Word(v, "vault.backend", "file", "keychain"); ok {
			r.c.Backend = s
			r.said("vault.backend")
		}
	}
	if v := n.Get("generation_file"); v != nil {
		if s, ok := r.f.Text(v, "vault.generation_file"); ok {
			if !filepath.IsAbs(s) {
				r.f.Report(v.Pos, "path", "write the whole path, from /", "vault.generation_file must be an absolute path")
			}
			r.c.GenerationFile = s
			r.said("vault.generation_file")
		}
	}
}

func (r *reader) limits(n *strictyaml.Node) {
	if n == nil || !r.f.Map(n, "limits", "calls", "calls_per_target", "answer_bytes") {
		return
	}
	const mostCalls, mostAnswer = 4096, 8 << 20
	whole := func(key string, high int64, set func(int64)) {
		if v := n.Get(key); v != nil {
			if i, ok := r.f.Whole(v, "limits."+key, 1, high); ok {
				set(i)
				r.said("limits." + key)
			}
		}
	}
	whole("calls", mostCalls, func(i int64) { r.c.Calls = int(i) })
	whole("calls_per_target", mostCalls, func(i int64) { r.c.CallsPerTarget = int(i) })
	whole("answer_bytes", mostAnswer, func(i int64) { r.c.AnswerBytes = i })
}

// lives reads the sections that hold only times.
func (r *reader) lives(root *strictyaml.Node) {
	duration := func(section, key string, low, high time.Duration, into *time.Duration) {
		n := root.Get(section)
		if n == nil || n.Kind != strictyaml.Mapping {
			return
		}
		if v := n.Get(key); v != nil {
			if d, ok := r.f.Duration(v, section+"."+key, low, high); ok {
				*into = d
				r.said(section + "." + key)
			}
		}
	}
	for section, keys := range map[string][]string{"sessions": {"life", "idle"}, "approvals": {"card"}, "ledger": {"keep"}} {
		if n := root.Get(section); n != nil {
			r.f.Map(n, section, keys...)
		}
	}
	const day = 24 * time.Hour
	duration("sessions", "life", time.Minute, 7*day, &r.c.SessionLife)
	duration("sessions", "idle", time.Minute, day, &r.c.SessionIdle)
	duration("approvals", "card", 10*time.Second, time.Hour, &r.c.CardLife)
	duration("ledger", "keep", time.Hour, 3660*day, &r.c.LedgerKeep)
}

func (r *reader) texts(n *strictyaml.Node, what string) []string {
	var out []string
	for _, item := range r.f.List(n, what) {
		if s, ok := r.f.Text(item, what); ok {
			out = append(out, s)
		}
	}
	return out
}

// program reads a program and its arguments.
func (r *reader) program(n *strictyaml.Node, key string, into *[]string) {
	if n != nil {
		*into = r.texts(n, key)
		r.said(key)
	}
}

// agents resolves the users and groups that may reach the agent listener.
func (r *reader) agents(n *strictyaml.Node) {
	if n == nil || !r.f.Map(n, "agents", "users", "groups") {
		return
	}
	for _, item := range r.f.List(n.Get("users"), "agents.users") {
		if name, ok := r.name(item, "agents.users"); ok {
			if id, ok := r.id(item, name, userID); ok {
				r.c.AgentUsers = append(r.c.AgentUsers, uint32(id))
			}
		}
	}
	for _, item := range r.f.List(n.Get("groups"), "agents.groups") {
		if name, ok := r.name(item, "agents.groups"); ok {
			if id, ok := r.id(item, name, groupID); ok {
				r.c.AgentGroups = append(r.c.AgentGroups, int(id))
			}
		}
	}
	r.said("agents")
}

// name takes a name or a number.
func (r *reader) name(n *strictyaml.Node, what string) (string, bool) {
	if n.Kind == strictyaml.Number {
		return n.Text, true
	}
	return r.f.Text(n, what)
}

func (r *reader) id(n *strictyaml.Node, name string, find func(string) (string, error)) (int64, bool) {
	if id, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int64(id), true
	}
	text, err := find(name)
	id, bad := strconv.ParseUint(text, 10, 31)
	if err != nil || bad != nil {
		r.f.Report(n.Pos, "unknown-name", "write a name of this machine, or a number", "%s is not known on this machine", strconv.QuoteToASCII(name))
		return 0, false
	}
	return int64(id), true
}

func userID(name string) (string, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return "", err
	}
	return u.Uid, nil
}

func groupID(name string) (string, error) {
	g, err := user.LookupGroup(name)
	if err != nil {
		return "", err
	}
	return g.Gid, nil
}

func (r *reader) log(n *strictyaml.Node) {
	if n == nil || !r.f.Map(n, "log", "level", "format") {
		return
	}
	if v := n.Get("level"); v != nil {
		if s, ok := r.f.Word(v, "log.level", "debug", "info", "warn", "error"); ok {
			r.c.LogLevel = s
			r.said("log.level")
		}
	}
	if v := n.Get("format"); v != nil {
		if s, ok := r.f.Word(v, "log.format", "text", "json"); ok {
			r.c.LogFormat = s
			r.said("log.format")
		}
	}
}

// rows are the effective settings, for `chatelained config`.
func (c Config) rows() [][2]string {
	port := func(p int) string {
		if p == 0 {
			return "off"
		}
		return "127.0.0.1:" + strconv.Itoa(p)
	}
	list := func(v any) string { return strings.Trim(fmt.Sprint(v), "[]") }
	rows := append(c.vaultLocks.rows(), [][2]string{
		{"listen.agent_tcp", port(c.AgentTCP)}, {"listen.metrics_tcp", port(c.MetricsTCP)},
		{"vault.backend", c.Backend}, {"vault.generation_file", c.GenerationFile},
		{"limits.calls", strconv.Itoa(c.Calls)}, {"limits.calls_per_target", strconv.Itoa(c.CallsPerTarget)},
		{"limits.answer_bytes", strconv.FormatInt(c.AnswerBytes, 10)},
		{"sessions.life", strictyaml.DurationText(c.SessionLife)}, {"sessions.idle", strictyaml.DurationText(c.SessionIdle)},
		{"approvals.card", strictyaml.DurationText(c.CardLife)}, {"ledger.keep", strictyaml.DurationText(c.LedgerKeep)},
		{"notify", strings.Join(c.Notify, " ")}, {"alert", strings.Join(c.Alert, " ")},
		{"agents.users", list(c.AgentUsers)}, {"agents.groups", list(c.AgentGroups)},
		{"log.level", c.LogLevel}, {"log.format", c.LogFormat},
	}...)
	for _, s := range c.Sources {
		rows = append(rows, s.row())
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	return rows
}

func (c Config) origin(key string) string {
	if s, ok := c.from[key]; ok {
		return s
	}
	if strings.HasPrefix(key, "agents.") {
		if s, ok := c.from["agents"]; ok {
			return s
		}
	}
	return "default"
}

// valueWidth is what most values need, so that their origins stand in one column.
const valueWidth = 36

func configCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print the settings in force and where each comes from",
		Long:    "Print the folders and settings in force, one line each: key, value, origin\n(flag or environment for the folders; the file or default for the rest).",
		Example: "  chatelained config\n  chatelained --config /etc/chatelaine config", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pl, err := p.places()
			if err != nil {
				return err
			}
			c, err := loadConfig(pl)
			if err != nil {
				return err
			}
			rows := [][3]string{
				{"config", pl.Config, p.folderOrigin(p.options.Config, client.EnvConfig)},
				{"state", pl.State, p.folderOrigin(p.options.State, client.EnvState)},
				{"runtime", pl.Runtime, p.folderOrigin(p.options.Runtime, client.EnvRuntime)},
			}
			for _, r := range c.rows() {
				v := r[1]
				if v == "" {
					v = "-"
				}
				rows = append(rows, [3]string{r[0], v, c.origin(r[0])})
			}
			key := 0
			for _, r := range rows {
				key = max(key, len(r[0]))
			}
			for _, r := range rows {
				fmt.Fprintf(cmd.OutOrStdout(), "%-*s %-*s %s\n", key, r[0], valueWidth, r[1], r[2])
			}
			return nil
		},
	}
}

func (p *program) folderOrigin(flag, env string) string {
	switch {
	case flag != "":
		return "flag"
	case os.Getenv(env) != "":
		return env
	}
	return "default"
}
