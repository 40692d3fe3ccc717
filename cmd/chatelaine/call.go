package main

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/client"
	"chatelaine/internal/fault"
)

// requestIDForm is the form of docs/http-api.md ("Once").
var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{7,63}$`)

// eagerPoll is the least time between two looks at a call, should the daemon
// answer a long poll at once.
const eagerPoll = 500 * time.Millisecond

type callFlags struct {
	agentFlags
	input, requestID string
}

func (a *app) callCmd() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call ACTION [KEY=VALUE…]",
		Short: "Perform an action",
		Long: `Perform an action and print the facts that its contract selects.

KEY=VALUE follows the action's published input: text is taken as it is typed,
numbers, true, false, null and lists are JSON. The first call of an agent asks
for a session, prints its pairing code and ends with exit code 3; so does a call
that a person must approve. Asking again with the same request id never sends a
second time.`,
		Example: `  chatelaine call deploy_release service=api environment=test version=2.14.3 reason='fixes retries'
  chatelaine call get_deployment --json-input request.json --json
  chatelaine call deploy_release service=api environment=production version=2.14.3 reason=fix --wait 5m
  echo '{"sku":"A-1"}' | chatelaine call read_stock --json-input -`,
		Args: atLeastAction,
		RunE: do(func(cmd *cobra.Command, args []string) error { return a.call(cmd.Context(), args[0], args[1:], f) }),
	}
	f.add(cmd, true)
	jsonFlag(cmd, &f.json)
	cmd.Flags().StringVar(&f.input, "json-input", "", "read the whole input from this JSON file, - for standard input")
	cmd.Flags().StringVar(&f.requestID, "request-id", "", "name this call: the same id again returns its recorded outcome")
	return cmd
}

func atLeastAction(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "" {
		return usage(words(cmd)+" needs ACTION", "see chatelaine actions for their names")
	}
	if strings.Contains(args[0], "=") {
		return usage(fmt.Sprintf("the first argument is the action's name, not %q", args[0]), "see chatelaine actions for their names")
	}
	return nil
}

func (a *app) call(ctx context.Context, action string, args []string, f callFlags) error {
	given, err := a.givenInput(args, f)
	if err != nil {
		return err
	}
	r, err := a.agentRun(f.agentFlags)
	if err != nil {
		return err
	}
	defer r.agent.Close()
	view, given, err := r.prepare(ctx, action, args, given)
	if err != nil {
		return err
	}
	if f.requestID != "" {
		r.tellLastTry(ctx, f.requestID)
	}
	return r.perform(ctx, view, client.CallRequest{Input: given, RequestID: requestID(f.requestID)})
}

// prepare gets the action's view and makes its input of the arguments where it
// was not given whole.
func (r *agentRun) prepare(ctx context.Context, action string, args []string, given jsontext.Value) (client.Action, jsontext.Value, error) {
	var view client.Action
	err := r.in(ctx, func() error {
		var err error
		view, err = r.agent.Action(ctx, action)
		return err
	})
	if err != nil {
		return view, nil, r.unknownAction(ctx, action, err)
	}
	if given != nil {
		return view, given, nil
	}
	s, err := parseSchema(view.InputSchema)
	if err != nil {
		return view, nil, err
	}
	given, err = buildInput(action, s, args)
	return view, given, err
}

// tellLastTry says how the last try of a named call ended, where nothing
// happened and asking now starts another: else a call that a person approved
// and that could not be sent would only be seen to wait for approval again.
func (r *agentRun) tellLastTry(ctx context.Context, id string) {
	last, err := r.agent.Result(ctx, id, 0)
	if err != nil || last.Err == nil {
		return // what matters is met again by the call itself
	}
	switch last.Err.Code {
	case fault.UpstreamUnavailable, fault.RemoteRateLimited:
		r.a.note("the last try of %s ended: %s; asking anew", printable(id), printable(lowerFirst(last.Err.Error())))
	}
}

// givenInput checks what can be checked without a daemon; nil means: from the
// arguments.
func (a *app) givenInput(args []string, f callFlags) (jsontext.Value, error) {
	if f.requestID != "" && !requestIDForm.MatchString(f.requestID) {
		return nil, usage("--request-id has 8 to 64 letters, digits, '_', '.' or '-' and begins with a letter or digit")
	}
	if f.input == "" {
		return nil, nil
	}
	if len(args) > 0 {
		return nil, usage("give the input as KEY=VALUE or with --json-input, not both")
	}
	return a.readInput(f.input)
}

// requestID names every call, so that a call whose answer was lost can be asked
// for again without a second send.
func requestID(given string) string {
	if given != "" {
		return given
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "cli_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// unknownAction adds the nearest name.
func (r *agentRun) unknownAction(ctx context.Context, action string, err error) error {
	if client.CodeOf(err) != fault.UnknownAction {
		return err
	}
	list, listErr := r.agent.Actions(ctx)
	if listErr != nil {
		return err
	}
	var names []string
	for _, v := range list {
		names = append(names, v.Name)
	}
	hint := "see chatelaine actions"
	if near := nearest(action, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usage(fmt.Sprintf("there is no action %q for this caller (%s)", action, fault.UnknownAction), hint)
}

// perform sends the call, follows it as long as --wait allows and prints how it
// ended.
func (r *agentRun) perform(ctx context.Context, view client.Action, req client.CallRequest) error {
	e, err := r.ask(ctx, view, req)
	if err != nil {
		return err
	}
	return r.show(view.Name, e, view.Effect != "read")
}

// ask sends the call and follows it as long as --wait allows.
func (r *agentRun) ask(ctx context.Context, view client.Action, req client.CallRequest) (client.Envelope, error) {
	var e client.Envelope
	err := r.in(ctx, func() error {
		var err error
		req.Wait = int(min(r.remaining(), client.MaxWait) / time.Second)
		if e, err = r.agent.Call(ctx, view.Name, req); err != nil {
			return lostAnswer(err, req.RequestID, view.Effect != "read")
		}
		return sessionRefusal(e)
	})
	if err != nil {
		return e, err
	}
	return r.follow(ctx, e, req.RequestID)
}

// sessionRefusal lets the session's codes be treated in one place.
func sessionRefusal(e client.Envelope) error {
	if e.Err == nil {
		return nil
	}
	switch e.Err.Code {
	case fault.SessionRequired, fault.SessionPending, fault.SessionRevoked:
		return e.Err
	}
	return nil
}

// lostAnswer is exit 4 where a change was asked for and no answer came.
func lostAnswer(err error, id string, change bool) error {
	var gone *client.UnreachableError
	var reply *client.ReplyError
	sent := errors.As(err, &reply) || (errors.As(err, &gone) && gone.Sent)
	if !sent || !change {
		return err
	}
	return &failure{exit: exitUnknown, cause: err, msg: "the call may have happened: " + err.Error(),
		hints: []string{"do not start it anew; the same command with --request-id " + id + " asks for its outcome and sends nothing twice"}}
}

// follow looks at a waiting call until it ends or --wait is over.
func (r *agentRun) follow(ctx context.Context, e client.Envelope, id string) (client.Envelope, error) {
	told := false
	for isWaiting(e) && r.remaining() >= time.Second {
		if e.RequestID != "" {
			id = e.RequestID // a call that joined another carries the other's id
		}
		if !told && e.Err.Code == fault.ApprovalRequired {
			told = true
			r.a.note("waiting for a person; an operator decides with: chatelaine approve %s", printable(id))
		}
		began := time.Now()
		next, err := r.agent.Result(ctx, id, min(r.remaining(), client.MaxWait))
		if err != nil {
			return e, stillOpen(err, id)
		}
		e = next
		if isWaiting(e) && time.Since(began) < eagerPoll {
			if err := pause(ctx, eagerPoll); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

func isWaiting(e client.Envelope) bool {
	return e.Err != nil && (e.Err.Code == fault.ApprovalRequired || e.Err.Code == fault.InProgress)
}

// stillOpen says how to come back to a call that was not seen to end.
func stillOpen(err error, id string) error {
	f := asFailure(classify(err))
	if f.exit == exitInterrupted || f.exit == exitRefused {
		f.exit = exitWaiting
	}
	f.msg = "the call goes on without this command: " + f.msg
	f.hints = append(f.hints, "ask again with the same command and --request-id "+id)
	return f
}

// show prints the outcome.
func (r *agentRun) show(action string, e client.Envelope, change bool) error {
	if r.json {
		raw := e.Raw.Clone()
		if err := raw.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		fmt.Fprintln(r.a.out, string(raw))
	}
	if e.OK {
		if r.json {
			return nil
		}
		return r.a.showData(e)
	}
	return &failure{exit: exitOf(e.Err.Code, e.Err.Retryable, change), cause: e.Err,
		msg: tell(e.Err), hints: callHints(action, e)}
}

func callHints(action string, e client.Envelope) []string {
	id := e.RequestID
	if e.Err.RequestID != "" {
		id = e.Err.RequestID
	}
	out := hintsFor(e.Err)
	switch e.Err.Code {
	case fault.ApprovalRequired:
		return []string{"an operator decides with: chatelaine approve " + id,
			"then the same command with --request-id " + id + " returns the outcome",
			"with --wait 5m it waits for the decision and the outcome"}
	case fault.InProgress:
		return []string{"ask again with the same command and --request-id " + id}
	case fault.OutcomeUnknown, fault.InvalidResponse:
		return append(out, "request id "+id+"; an operator looks with: chatelaine calls show "+id+" --details")
	case fault.InvalidArgument:
		return append(out, "see chatelaine actions "+action)
	}
	return append(out, "request id "+id)
}

// showData prints the selected facts, then what is only for reading.
func (a *app) showData(e client.Envelope) error {
	rows, err := memberRows(e.Data)
	if err != nil {
		return err
	}
	a.pairs(rows)
	a.displayed(e.Display)
	return nil
}

// displayed prints what is only for reading.
func (a *app) displayed(all map[string]client.DisplayText) {
	for _, name := range sortedKeys(all) {
		d := all[name]
		end := ""
		if d.Truncated {
			end = ", cut at its bound"
		}
		fmt.Fprintf(a.out, "%s (text of the remote system, not checked%s):\n", printable(name), end)
		for _, line := range strings.Split(printableLines(d.Text), "\n") {
			fmt.Fprintln(a.out, "  "+line)
		}
	}
}
