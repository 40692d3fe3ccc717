package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/agentapi"
	"chatelaine/internal/client"
	"chatelaine/internal/loopback"
	"chatelaine/internal/mcpserver"
	"chatelaine/internal/operatorapi"
)

const (
	// storeLimit is how long the ledger's file may be held by a process that
	// is just ending.
	storeLimit = 2 * time.Second
	// drainLimit lets a sent call end within its own time-out (30 s a step)
	// before the daemon stops all the same.
	drainLimit = 40 * time.Second
	// closeLimit is how long open requests may take once calls have ended.
	closeLimit = 2 * time.Second
)

func serveCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Run the daemon in the foreground",
		Long: "Run the daemon in the foreground, with its log on standard error. It starts with\n" +
			"the vault locked. On SIGTERM or Ctrl-C it takes no new call, lets sent ones end\n" +
			"and stops.",
		Example: "  chatelained serve\n  chatelained --config /etc/chatelaine serve", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pl, err := p.places()
			if err != nil {
				return err
			}
			cfg, err := loadConfig(pl)
			if err != nil {
				return err
			}
			if err := checkRuntime(pl); err != nil {
				return err
			}
			log := newLogger(cfg, cmd.ErrOrStderr())
			d, err := openDaemon(pl, cfg, log, cleanEnvironment(log))
			if err != nil {
				return err
			}
			return errors.Join(d.serve(cmd.Context()), d.close())
		},
	}
}

func newLogger(c Config, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // one of four words, checked by the loader
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func mistakes(n int) string {
	if n == 1 {
		return "1 mistake"
	}
	return fmt.Sprintf("%d mistakes", n)
}

func renderProblems(ps actions.Problems) error {
	var out strings.Builder
	_ = ps.Render(&out)
	return fmt.Errorf("%s in contracts or targets; nothing is served\n%s", mistakes(len(ps)), strings.TrimRight(out.String(), "\n"))
}

// served is one server and its listener.
type served struct {
	server *loopback.Server
	ln     net.Listener
}

// serve opens the listeners and runs until ctx ends or one of them fails.
func (d *daemon) serve(ctx context.Context) error {
	all, err := d.open(ctx)
	if err != nil {
		return err
	}
	sweeping, endSweep := context.WithCancel(context.Background())
	defer endSweep()
	failed := make(chan error, len(all))
	var wg sync.WaitGroup
	wg.Go(func() { d.sweep(sweeping) })
	wg.Go(func() { d.watchVault(sweeping) })
	wg.Go(func() { d.vault.WatchSources(sweeping) })
	wg.Go(func() { d.gateway.KeepFresh(sweeping) })
	wg.Go(func() { d.usage.Watch(sweeping, d.usageLost) })
	wg.Go(func() { d.watchExpiry(sweeping) })
	for _, s := range all {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := s.server.Serve(s.ln); err != nil {
				failed <- err
			}
		}()
	}
	d.log.Info("chatelained is up", "version", version, "instance", d.self.ID, "mode", d.Mode(),
		"contracts", len(d.gateway.Set().Contracts()), "vault", "locked", "agents", d.places.AgentSocket(), "operators", d.places.OperatorSocket())
	select {
	case <-ctx.Done():
		d.log.Info("stopping: no new calls; sent ones end within their own limits")
	case err = <-failed:
		d.log.Error("a listener failed", "cause", err.Error())
	}
	d.stop(all)
	endSweep()
	wg.Wait()
	d.log.Info("stopped")
	return err
}

func (d *daemon) stop(all []served) {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if err := d.gateway.Drain(ctx); err != nil {
		d.log.Warn("some calls did not end in time; they are unresolved at the next start")
	}
	closing, cancelClose := context.WithTimeout(context.Background(), closeLimit)
	defer cancelClose()
	for _, s := range all {
		_ = s.server.Shutdown(closing)
	}
}

// open makes every listener. Sockets are needed; TCP is served only while both
// loopbacks are free, and the daemon goes on without it otherwise.
func (d *daemon) open(ctx context.Context) ([]served, error) {
	if err := d.makeRuntime(); err != nil {
		return nil, err
	}
	agents := agentapi.New(d.gateway)
	agents.MCP(mcpserver.Handler(agents, version))
	agentServer := func(name string) *loopback.Server {
		return &loopback.Server{Name: name, Handler: agents.Handler(), Admit: d.admitAgent, Refuse: agents.Refuse, Logger: d.log}
	}
	operators := operatorapi.New(operatorapi.Deps{Gateway: d.gateway, Sessions: d.sessions, Desk: d.desk, Vault: operatorPort{d}, Daemon: d, Logger: d.log})
	operatorServer := &loopback.Server{Name: "socket", Handler: operators.Handler(), Admit: admitOwner, Refuse: operatorapi.Refuse, ConnContext: operatorapi.ConnContext, Logger: d.log}
	metricsServer := func(name string, admit func(uint32) bool) *loopback.Server {
		return &loopback.Server{Name: name, Handler: d.metricsHandler(), Admit: admit, Logger: d.log}
	}

	var all []served
	add := func(name, path string, mode fs.FileMode, gid int, s *loopback.Server) error {
		ln, err := loopback.ListenUnix(path, mode, gid)
		if err != nil {
			for _, s := range all {
				_ = s.ln.Close()
			}
			return err
		}
		all = append(all, served{s, ln})
		d.listens(name, path, "serving")
		return nil
	}
	mode, gid := d.agentSocketMode()
	if err := add("agents", d.places.AgentSocket(), mode, gid, agentServer("socket")); err != nil {
		return nil, err
	}
	if err := add("operators", d.places.OperatorSocket(), 0o600, -1, operatorServer); err != nil {
		return nil, err
	}
	if err := add("metrics", metricsSocket(d.places), 0o600, -1, metricsServer("socket", admitOwner)); err != nil {
		return nil, err
	}
	all = append(all, d.openTCP(ctx, "agents-tcp", d.config.AgentTCP, func() *loopback.Server { return agentServer("tcp") })...)
	anyone := func(uint32) bool { return true } // numbers only, with closed labels
	all = append(all, d.openTCP(ctx, "metrics-tcp", d.config.MetricsTCP, func() *loopback.Server { return metricsServer("tcp", anyone) })...)
	return all, nil
}

func (d *daemon) openTCP(ctx context.Context, name string, port int, server func() *loopback.Server) []served {
	address := "127.0.0.1:" + strconv.Itoa(port)
	if port == 0 {
		d.listens(name, "-", "off")
		return nil
	}
	lns, err := loopback.ListenTCP(ctx, port)
	if err != nil {
		d.log.Warn("TCP not served; the socket is", "listener", name, "cause", err.Error())
		d.listens(name, address, "not served: "+err.Error())
		return nil
	}
	var out []served
	for _, ln := range lns {
		out = append(out, served{server(), ln})
		d.listens(name, ln.Addr().String(), "serving")
	}
	return out
}

// socketPathMax is the longest path that every supported system takes for a Unix
// socket (macOS: 104 bytes with the closing zero).
const socketPathMax = 103

// checkRuntime says that a path is too long where the system would say only
// "invalid argument".
func checkRuntime(pl client.Places) error {
	for _, path := range []string{pl.AgentSocket(), pl.OperatorSocket(), metricsSocket(pl)} {
		if len(path) > socketPathMax {
			return usageError{fmt.Errorf("the socket path %s has %d bytes; at most %d work on every system: choose a shorter --runtime", path, len(path), socketPathMax)}
		}
	}
	return nil
}

// makeRuntime makes the folder of the sockets: private, or passable where other
// users are agents (the sockets' own modes then decide).
func (d *daemon) makeRuntime() error {
	mode := fs.FileMode(0o700)
	if len(d.config.AgentUsers)+len(d.config.AgentGroups) > 0 {
		mode = 0o755
	}
	if err := os.MkdirAll(d.places.Runtime, mode); err != nil {
		return usageError{fmt.Errorf("runtime folder: %w", err)}
	}
	st, err := os.Lstat(d.places.Runtime)
	if err != nil || !st.IsDir() {
		return usageError{fmt.Errorf("runtime folder %s is not a folder", d.places.Runtime)}
	}
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && owner.Uid != uint32(os.Getuid()) {
		return usageError{fmt.Errorf("runtime folder %s belongs to user %d, who could put sockets of their own there; choose another --runtime", d.places.Runtime, owner.Uid)}
	}
	if st.Mode().Perm()&0o022 != 0 {
		return usageError{fmt.Errorf("runtime folder %s can be written by others (mode %o); make it 0700", d.places.Runtime, st.Mode().Perm())}
	}
	if st.Mode().Perm()&mode != mode { // made by init, or under a narrow umask
		if err := os.Chmod(d.places.Runtime, mode); err != nil {
			return usageError{fmt.Errorf("runtime folder: %w", err)}
		}
	}
	return nil
}

// agentSocketMode opens the agent socket exactly as far as the settings say.
// Who may really connect is decided by uid, before a byte is read.
func (d *daemon) agentSocketMode() (fs.FileMode, int) {
	switch {
	case len(d.config.AgentUsers) > 0 || len(d.config.AgentGroups) > 1:
		return 0o666, -1
	case len(d.config.AgentGroups) == 1:
		return 0o660, d.config.AgentGroups[0]
	}
	return 0o600, -1
}

// admitAgent says whether a user may be an agent: those that the settings name,
// or the daemon's own user where they name none.
func (d *daemon) admitAgent(uid uint32) bool {
	if len(d.config.AgentUsers)+len(d.config.AgentGroups) == 0 {
		return uid == uint32(os.Getuid())
	}
	return slices.Contains(d.config.AgentUsers, uid) || inGroups(uid, d.config.AgentGroups)
}

// agentUsers are the users that are agents by themselves, not by a group.
func (d *daemon) agentUsers() []uint32 {
	if len(d.config.AgentUsers)+len(d.config.AgentGroups) == 0 {
		return []uint32{uint32(os.Getuid())}
	}
	return append([]uint32{}, d.config.AgentUsers...)
}

func inGroups(uid uint32, gids []int) bool {
	if len(gids) == 0 {
		return false
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return false
	}
	has, err := u.GroupIds()
	if err != nil {
		return false
	}
	for _, g := range gids {
		if slices.Contains(has, strconv.Itoa(g)) {
			return true
		}
	}
	return false
}

// operatorUsers are the daemon's own user and root, who can do anything anyway.
func operatorUsers() []uint32 {
	if own := uint32(os.Getuid()); own != 0 {
		return []uint32{own, 0}
	}
	return []uint32{0}
}

// admitOwner admits operators.
func admitOwner(uid uint32) bool { return slices.Contains(operatorUsers(), uid) }

func (d *daemon) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case d.vault.CheckOpen() != nil:
			http.Error(w, "the vault is locked", http.StatusServiceUnavailable)
		case d.gateway.RecordState().Latched != nil:
			http.Error(w, "the record cannot be written", http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(w, "ready")
		}
	})
	return mux
}

var _ operatorapi.Daemon = (*daemon)(nil)
