package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

// sessionPoll is how often a waiting command asks whether its session was
// authorised: a person takes seconds.
const sessionPoll = time.Second

// maxWaitFlag bounds --wait: a card or a session lapses long before.
const maxWaitFlag = 24 * time.Hour

// agentFlags are the flags of every command that acts as an agent.
type agentFlags struct {
	name, url string
	wait      time.Duration
	json      bool
}

func (f *agentFlags) add(cmd *cobra.Command, wait bool) {
	cmd.Flags().StringVar(&f.name, "agent", "", "name of the agent whose session is used (or "+envAgent+"; default cli-USER)")
	cmd.Flags().StringVar(&f.url, "agent-url", "", "use the TCP listener, http://127.0.0.1:PORT, instead of the socket (or "+envAgentURL+")")
	if wait {
		cmd.Flags().DurationVar(&f.wait, "wait", 0, "wait this long for a person or for the end, such as 30s")
	}
}

// agentRun is one command acting as an agent: its client and its session.
type agentRun struct {
	a        *app
	agent    *client.Agent
	tokens   client.Tokens
	saved    client.SavedSession
	name     string
	peer     string // socket or address that the session is for
	deadline time.Time
	json     bool
}

func (a *app) agentRun(f agentFlags) (*agentRun, error) {
	if f.wait < 0 || f.wait > maxWaitFlag {
		return nil, usage("--wait must lie between 0s and 24h")
	}
	name, err := a.agentName(f.name)
	if err != nil {
		return nil, err
	}
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	o, err := a.owners()
	if err != nil {
		return nil, err
	}
	opts := client.AgentOptions{Owners: o, UserAgent: userAgent(), URL: f.url}
	if opts.URL == "" {
		opts.URL = a.getenv(envAgentURL)
	}
	if opts.URL == "" {
		opts.Socket = p.AgentSocket()
	}
	agent, err := client.NewAgent(opts)
	if err != nil {
		return nil, usage(err.Error())
	}
	r := &agentRun{a: a, agent: agent, name: name, peer: opts.Socket + opts.URL, deadline: time.Now().Add(f.wait), json: f.json}
	return r, r.load(p)
}

// load takes the stored session, if there is one.
func (r *agentRun) load(p client.Places) error {
	// The daemon's own absence is told before that of a folder for tokens.
	if _, err := os.Stat(p.Runtime); err != nil && r.peer == p.AgentSocket() {
		return &client.UnreachableError{Where: r.peer, Err: client.ErrNoSocket}
	}
	var err error
	if r.tokens, err = client.FindTokens(p, r.a.getenv, os.Getuid()); err != nil {
		return err
	}
	return r.reload()
}

func (r *agentRun) reload() error {
	s, err := r.tokens.Load(r.name, r.peer)
	if errors.Is(err, client.ErrNoSession) {
		return nil
	}
	if err != nil {
		return err
	}
	r.saved = s
	r.agent.SetToken(s.Token)
	return nil
}

// remaining is what is left of --wait.
func (r *agentRun) remaining() time.Duration { return max(0, time.Until(r.deadline)) }

// in runs f within an authorised session: it opens one where none is stored or
// the daemon does not know the stored one, and waits for the operator as long
// as --wait allows.
func (r *agentRun) in(ctx context.Context, f func() error) error {
	if r.saved.Token == "" {
		if err := r.openAndWait(ctx); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		err := f()
		switch code := client.CodeOf(err); {
		case code == fault.SessionRevoked:
			return errors.Join(err, r.forget())
		case try > 1:
			return err
		case code == fault.SessionRequired:
			if err := r.forget(); err != nil {
				return err
			}
			if err := r.openAndWait(ctx); err != nil {
				return err
			}
		case code == fault.SessionPending:
			if err := r.await(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

func (r *agentRun) forget() error {
	r.saved = client.SavedSession{}
	r.agent.SetToken("")
	return r.tokens.Drop(r.name)
}

func (r *agentRun) openAndWait(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	return r.await(ctx)
}

// open asks for a session, unless another command has done so meanwhile. The
// anchor is the parent: this program ends at once.
func (r *agentRun) open(ctx context.Context) error {
	unlock, err := r.tokens.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.reload(); err != nil || r.saved.Token != "" {
		return err
	}
	s, err := r.agent.OpenSession(ctx, r.name, "parent")
	if err != nil {
		return err
	}
	r.saved = client.SavedSession{Name: r.name, SessionID: s.ID, Token: s.Token, PairingCode: s.PairingCode, Peer: r.peer}
	r.agent.SetToken(s.Token)
	return r.tokens.Save(r.saved)
}

// await waits for the operator's decision about the session, as long as --wait
// allows; then it ends with what the operator must type.
func (r *agentRun) await(ctx context.Context) error {
	if state, err := r.agent.Session(ctx); err != nil || state.State == "authorised" {
		return err
	}
	if r.remaining() > 0 {
		r.a.note("waiting for an operator to authorise the session of agent %s; pairing code %s", printable(r.name), printable(r.saved.PairingCode))
		r.a.note("hint: the operator types: %s", r.authorizeCommand())
	}
	for r.remaining() > 0 {
		if err := pause(ctx, min(sessionPoll, r.remaining())); err != nil {
			return err
		}
		state, err := r.agent.Session(ctx)
		if err != nil || state.State == "authorised" {
			return err
		}
	}
	return r.pending()
}

func (r *agentRun) authorizeCommand() string {
	return "chatelaine session authorize " + printable(r.saved.SessionID)
}

// pending is exit 3 with the pairing code, for people and for programs.
func (r *agentRun) pending() error {
	if r.json {
		err := r.a.printJSON(map[string]string{
			"waiting_for": "session", "agent": r.name, "session_id": r.saved.SessionID,
			"pairing_code": r.saved.PairingCode, "authorize": r.authorizeCommand(),
		})
		if err != nil {
			return err
		}
	}
	return &failure{exit: exitWaiting,
		msg: fmt.Sprintf("the session of agent %s waits for an operator; its pairing code is %s", r.name, r.saved.PairingCode),
		hints: []string{
			"the operator compares the code and types: " + r.authorizeCommand(),
			"then run this command again",
		}}
}
