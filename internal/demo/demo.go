package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/demo/release"
)

// DefaultLimit is how long the play may take, the build not counted.
const DefaultLimit = 30 * time.Second

// Options say what is played and where it is shown.
type Options struct {
	Bin       string        // the folder of chatelaine and chatelained
	Contracts string        // the folder of the shipped contracts
	Keep      bool          // leave the home and say how to look around
	Out       io.Writer     // where the play is shown
	Colour    bool          // Out is a terminal that shows colours
	Limit     time.Duration // 0: DefaultLimit
}

// nobody is the user id that stands for users whom the kernel cannot name. The
// daemon serves no such caller, on purpose.
const nobody = 65534

// ErrClaims says that the play came to its end, or was cut short, and at least
// one claim did not hold. What and where was printed.
var ErrClaims = errors.New("not every claim holds")

// play is one run of the demo.
type play struct {
	*board
	o       Options
	began   time.Time
	home    *home
	p       *programs
	service *release.Service
	tokens  map[string]string // by environment
	tap     *tap
	agent   *client.Agent
	op      *client.Operator
}

// Run plays the main job. The error is nil only if every claim held. An
// interrupted play (ctx) leaves nothing behind.
func Run(ctx context.Context, o Options) error {
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	if os.Getuid() == nobody {
		return fmt.Errorf("user id %d stands for users that cannot be named, and the daemon refuses it; run the demo as any other user", nobody)
	}
	bin, err := filepath.Abs(o.Bin)
	if err != nil {
		return err
	}
	for _, name := range []string{"chatelaine", "chatelained"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("%w; run make demo in the repository, which builds it, or give --bin", err)
		}
	}
	h, err := newHome()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &play{board: &board{out: o.Out, colour: o.Colour, gone: cancel}, o: o, began: time.Now(), home: h, p: &programs{bin: bin, home: h}}
	err = p.all(ctx)
	p.close()
	return p.finish(ctx, err)
}

// all plays the scenes in order. An error means that the play cannot go on.
func (p *play) all(ctx context.Context) error {
	p.line(p.paint(bold, "chatelaine: an agent deploys a release and never holds the credential"))
	for _, scene := range []struct {
		title string
		play  func(context.Context) error
	}{
		{"Set up: a release service over HTTPS with its own authority and tokens, a vault, the daemon", p.setUp},
		{"The agent asks for actions by name; it has no credential and names no address", p.ask},
		{"A production deploy waits for a person", p.decide},
		{"The release service lies: what it said, what the agent got, what the operator reads", p.lies},
		{"kill -9 between send and answer", p.crash},
		{"One record, checked without a key", p.record},
		{"The tokens, searched for raw and as hex, base64, percent, \\u, UTF-16 and reversed", p.search},
	} {
		p.scene(scene.title)
		if err := scene.play(ctx); err != nil {
			return err
		}
	}
	return nil
}

// setUp makes everything that the play needs.
func (p *play) setUp(ctx context.Context) error {
	p.tokens = map[string]string{}
	for _, environment := range []string{"test", "production"} {
		p.tokens[environment] = "rel-" + environment + "-" + strings.ToLower(rand.Text())
	}
	var err error
	if p.service, err = release.Start(p.tokens); err != nil {
		return fmt.Errorf("the release service: %w", err)
	}
	if err := os.MkdirAll(p.home.places.Contracts(), 0o700); err != nil {
		return err
	}
	if err := p.home.configure(p.o.Contracts, p.service.Address(), p.service.CA()); err != nil {
		return err
	}
	r, err := p.p.run(ctx, "chatelained", "", []string{"init", "--vault-passphrase-fd", "3", "--operator-passphrase-fd", "4",
		"--recovery-out", p.home.path("recovery.key")}, vaultPassphrase, operatorPassphrase)
	if err != nil {
		return err
	}
	if r.exit != 0 {
		return fmt.Errorf("chatelained init: %s", r.said())
	}
	if err := p.p.start(ctx); err != nil {
		return err
	}
	if err := p.unlock(ctx); err != nil {
		return err
	}
	for identity, target := range map[string]string{"deploy-test-bot": "test", "deploy-prod-bot": "production"} {
		args := []string{"identity", "put", identity, "--target", strings.TrimSuffix(identity, "-bot"), "--proof-fd", "3"}
		if _, err := p.p.must(ctx, p.tokens[target], args, operatorPassphrase); err != nil {
			return err
		}
	}
	if p.tap, err = newTap(p.home.path("agent"), p.home.places.AgentSocket()); err != nil {
		return err
	}
	if err := p.session(ctx); err != nil {
		return err
	}
	p.op = p.p.operator()
	return p.isReady(ctx)
}

// isReady claims what the operator's status tells.
func (p *play) isReady(ctx context.Context) error {
	s, err := p.op.Status(ctx)
	if err != nil {
		return err
	}
	p.claim(claim{"ready",
		fmt.Sprintf("vault %s with %d tokens, %d contracts, record %s, %d session authorised", s.Vault.State, s.Vault.Identities, s.Contracts.Loaded, s.Record.State, s.Sessions.Authorised),
		s.Vault.State == "open" && s.Vault.Identities == 2 && s.Contracts.Loaded == len(shipped) && s.Record.State == "writing" && s.Sessions.Authorised == 1,
		"an open vault with 2 tokens, 2 contracts, a record that is written, 1 session"})
	return nil
}

func (p *play) unlock(ctx context.Context) error {
	_, err := p.p.must(ctx, "", []string{"unlock", "--passphrase-fd", "3"}, vaultPassphrase)
	return err
}

// agentName is the agent's; after the crash a new session has the same name.
const agentName = "build-worker"

// session opens a session for the agent, as an agent does, and authorises it,
// as an operator does.
func (p *play) session(ctx context.Context) error {
	if p.agent != nil {
		p.agent.Close()
	}
	var err error
	p.agent, err = client.NewAgent(client.AgentOptions{Socket: p.home.path("agent"), Owners: client.OwnAndRoot(), UserAgent: "chatelaine-demo"})
	if err != nil {
		return err
	}
	s, err := p.agent.OpenSession(ctx, agentName, "self")
	if err != nil {
		return fmt.Errorf("the agent's session: %w", err)
	}
	p.agent.SetToken(s.Token)
	_, err = p.p.must(ctx, "", []string{"session", "authorize", s.ID, "--proof-fd", "3"}, operatorPassphrase)
	return err
}

// close ends everything that runs; the home stays.
func (p *play) close() {
	if p.agent != nil {
		p.agent.Close()
	}
	if p.op != nil {
		p.op.Close()
	}
	p.p.close()
	if p.tap != nil {
		p.tap.close()
	}
	if p.service != nil {
		_ = p.service.Close()
	}
}

// finish tells how it went and removes the home, or says where it is.
func (p *play) finish(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		p.line("")
		p.line("interrupted")
		return errors.Join(ctx.Err(), p.leave(p.o.Keep))
	}
	if err != nil {
		p.claim(claim{"the next step", strings.Join(strings.Fields(err.Error()), " "), false, "no error"})
	}
	took := time.Since(p.began)
	p.scene("The end")
	p.claim(claim{"in time", fmt.Sprintf("%.1f s", took.Seconds()), took < p.o.Limit, "less than " + p.o.Limit.String()})
	if p.failed > 0 {
		p.line("")
		p.line(p.paint(red, fmt.Sprintf("%d of %s FAILED", p.failed, count(p.claims, "claim"))))
		p.line("the daemon's log: " + p.home.log())
		return errors.Join(ErrClaims, p.leave(true))
	}
	p.line("")
	p.line(p.paint(green, fmt.Sprintf("all %s hold", count(p.claims, "claim"))))
	return p.leave(p.o.Keep)
}

// leave removes the home, or says how to look around in it.
func (p *play) leave(keep bool) error {
	if !keep {
		return p.home.remove()
	}
	pl := p.home.places
	p.line("")
	p.line("kept: " + p.home.dir)
	p.line("  config has the contracts and the site file, state the vault, the record and the ledger,")
	p.line("  damaged the copy with one byte changed; the daemon's log is daemon.log. Nothing runs any more.")
	p.line("look around, from this folder:")
	for _, text := range []string{
		"export " + client.EnvConfig + "=" + pl.Config,
		"export " + client.EnvState + "=" + pl.State,
		"export " + client.EnvRuntime + "=" + pl.Runtime,
		p.o.Bin + "/chatelaine audit verify " + filepath.Join(pl.State, "audit"),
		p.o.Bin + "/chatelaine audit verify " + p.home.path("damaged"),
		fmt.Sprintf("%s/chatelained serve 2>>%s &", p.o.Bin, p.home.log()),
		fmt.Sprintf("%s/chatelaine unlock          # the vault's passphrase: %s", p.o.Bin, vaultPassphrase),
		p.o.Bin + "/chatelaine calls list",
		fmt.Sprintf("%s/chatelaine calls resolve %s --did-not   # the operator's: %s", p.o.Bin, crashID, operatorPassphrase),
		"kill %1; rm -r " + p.home.dir,
	} {
		p.line("  " + text)
	}
	return nil
}
