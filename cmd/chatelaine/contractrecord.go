package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/actions"
	"chatelaine/internal/auditlog"
	"chatelaine/internal/client"
	"chatelaine/internal/contracttest"
)

// contractRecord is one run of the command.
type contractRecord struct {
	files contractFiles
	agent agentFlags
	show  auditShow
	input string
	keep  []string
	json  bool
}

// recordWait is how long the command waits for a person and for the end, unless
// told otherwise: the operator is there.
const recordWait = 10 * time.Minute

func (a *app) contractRecordCmd() *cobra.Command {
	o := contractRecord{}
	cmd := &cobra.Command{
		Use: "record ACTION [KEY=VALUE…] --key FILE", Short: "Make a fixture of a real answer",
		Long: `Perform one real call and make a fixture of what came back. The daemon makes the
call as it makes every other: with a session, and a person's approval where the
contract asks for one. What a change changes is changed. The answer is read from
the record with the key that audit show takes, so this is for whoever may read the
record. With --from no call is made; one that the record has is used.

Secrets, names of persons, and mail, network and postal addresses get stand-ins of
the same shape, the same one for the same text; headers that the contract does not
read are dropped. What a sentence says about somebody does not show by its form:
look through the file before anybody else can. Then the fixture is played, and
written only where the contract makes of it what it made of the real answer.
--keep NAME leaves the values of one member as they are. A file that is there is
never overwritten.`,
		Example: "  chatelaine contract record get_deployment service=api environment=test deployment_id=dep_8f2k1m9q --key recovery.key\n  chatelaine contract record deploy_release --from act_01JABCDEFGH --key recovery.key --contracts contracts",
		Args:    atLeastAction,
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("wait") {
				o.agent.wait = recordWait
			}
			return a.recordContract(cmd, args[0], args[1:], o)
		}),
	}
	o.files.add(cmd)
	o.agent.add(cmd, true)
	f := cmd.Flags()
	f.StringVar(&o.show.key, "key", "", "file with a key that the record is sealed to")
	f.StringVar(&o.show.dir, "audit", "", "folder of the record instead of the state folder's")
	f.IntVar(&o.show.fd, "passphrase-fd", -1, "read the operator passphrase for the key from this open descriptor instead of the terminal")
	f.StringVar(&o.show.id, "from", "", "make no call, use this one of the record, by its request id")
	f.StringVar(&o.input, "json-input", "", "read the whole input from this JSON file, - for standard input")
	f.StringSliceVar(&o.keep, "keep", nil, "name of a member whose values stay as they are; may be given again")
	jsonFlag(cmd, &o.json)
	return cmd
}

func (a *app) recordContract(cmd *cobra.Command, action string, args []string, o contractRecord) error {
	var err error
	if o.files, err = o.files.find(a); err != nil {
		return err
	}
	if err := a.recordable(action, args, o); err != nil {
		return err
	}
	if o.show.dir == "" {
		p, err := a.places()
		if err != nil {
			return err
		}
		o.show.dir = p.Record()
	}
	// All that can be wrong is found before anything is called.
	if _, err := os.ReadDir(o.show.dir); err != nil {
		return usage(fmt.Sprintf("cannot read the record in %s: %v", o.show.dir, plainCause(err)), "name its folder with --audit or --state")
	}
	key, err := readAuditKey(cmd, o.show.key, o.show.fd)
	if err != nil {
		return err
	}
	var ended error // how a call of ours ended, where it was no success
	if o.show.id == "" {
		if o.show.id, ended, err = a.callOnce(cmd.Context(), action, args, o); err != nil {
			return err
		}
	}
	found, opened, err := o.show.read(cmd.Context(), key)
	if err == nil && len(found) == 0 && ended != nil {
		return ended // refused before it was anything to record
	}
	if err := o.show.verdict(len(found), opened, err); err != nil {
		return err
	}
	rec, err := recordingOf(found, action)
	if err != nil {
		return cmp.Or(ended, err)
	}
	rec.Keep = o.keep
	return a.makeFixture(cmd.Context(), o, rec)
}

// recordable says what is wrong with the command line and the contracts.
func (a *app) recordable(action string, args []string, o contractRecord) error {
	switch {
	case o.show.key == "":
		return usage("the record is sealed: say which key opens it with --key FILE", "the recovery key, or audit-key.age of the state folder")
	case o.show.id != "" && (len(args) > 0 || o.input != ""):
		return usage("--from uses a call that was made; it takes no input")
	}
	set, problems := actions.LoadDrafts(o.files.site, o.files.contracts)
	if len(problems) > 0 {
		return a.lintProblems(o.files, problems, false)
	}
	return knownActions(set, []string{action})
}

// callOnce performs the call and returns its request id, however it ended, and what
// to say of an end without an answer.
func (a *app) callOnce(ctx context.Context, action string, args []string, o contractRecord) (id string, ended, err error) {
	f := callFlags{agentFlags: o.agent, input: o.input}
	given, err := a.givenInput(args, f)
	if err != nil {
		return "", nil, err
	}
	r, err := a.agentRun(o.agent)
	if err != nil {
		return "", nil, err
	}
	defer r.agent.Close()
	view, given, err := r.prepare(ctx, action, args, given)
	if err != nil {
		return "", nil, err
	}
	e, err := r.ask(ctx, view, client.CallRequest{Input: given, RequestID: requestID("")})
	if err != nil {
		return "", nil, err
	}
	if isWaiting(e) {
		return "", nil, &failure{exit: exitWaiting, cause: e.Err, msg: tell(e.Err),
			hints: []string{"once it has ended: chatelaine contract record " + action + " --from " + e.RequestID + " --key FILE"}}
	}
	if e.Err != nil {
		ended = &failure{exit: exitOf(e.Err.Code, e.Err.Retryable, view.Effect != "read"), cause: e.Err, msg: tell(e.Err),
			hints: append(callHints(action, e), "no answer is in the record, so no fixture was made")}
	}
	return e.RequestID, ended, nil
}

// statusOK is how the record names a proved success.
const statusOK = "OK"

// recordingOf gathers one call from its events.
func recordingOf(events []auditlog.Event, action string) (contracttest.Recording, error) {
	rec := contracttest.Recording{Action: action}
	sent := false
	for _, e := range events {
		if e.Action != "" && e.Action != action {
			return rec, usage(fmt.Sprintf("the call %s is one of %s, not of %s", e.CallID, e.Action, action))
		}
		if e.Detail["kind"] == auditlog.KindExchange {
			continue // of the identity's secret for a token: no step of the contract
		}
		switch e.Type {
		case auditlog.TypeIntent:
			if in, ok := e.Detail["input"].(map[string]any); ok {
				rec.Input = in
			}
			if !sent || stepOf(e) == "request" && rec.Code == "" && len(rec.Answers) == 0 {
				rec.Sent = e.Wall
			}
			sent = true
		case auditlog.TypeAnswer:
			rec.Answers = append(rec.Answers, answerOf(e))
			rec.Ended = e.Wall
		case auditlog.TypeOutcome, auditlog.TypeReconcile:
			rec.Code = e.Status
			if rec.Code == statusOK {
				rec.Code = ""
			}
		}
	}
	switch {
	case !sent:
		return rec, refused("nothing was sent in this call, so there is no answer to make a fixture of")
	case len(rec.Answers) == 0:
		return rec, refused("the record holds no answer of this call, so there is none to make a fixture of",
			"what a lost answer does is shown by a fixture with answers: [{close: before_answer}]")
	}
	return rec, nil
}

// stepOf is the step that an event belongs to. Records of releases with one step
// do not say it.
func stepOf(e auditlog.Event) string {
	if s, ok := e.Detail["step"].(string); ok {
		return s
	}
	return "request"
}

// answerOf takes an answer's event apart: a line with the status, headers, an
// empty line, trailers, an empty line, the body.
func answerOf(e auditlog.Event) contracttest.RecordedAnswer {
	out := contracttest.RecordedAnswer{Step: stepOf(e), Header: http.Header{}}
	if answered, ok := e.Detail["answered"].(bool); ok && !answered {
		return out
	}
	out.Status, _ = strconv.Atoi(compact(jsonOf(e.Detail["upstream_status"])))
	rest := e.Body
	if out.Status > 0 {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	for part := range 2 {
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			rest = after
			if len(line) == 0 || !ok {
				break
			}
			if name, value, ok := strings.Cut(string(line), ": "); ok && part == 0 {
				out.Header.Add(name, value)
			}
		}
	}
	out.Body = rest
	return out
}

// makeFixture writes the fixture, where the contract makes the same of it as of
// the real answer.
func (a *app) makeFixture(ctx context.Context, o contractRecord, rec contracttest.Recording) error {
	made, err := contracttest.Record(ctx, contracttest.Options{Site: o.files.site, Contracts: o.files.contracts}, rec)
	if err != nil {
		var problems actions.Problems
		if errors.As(err, &problems) {
			return a.lintProblems(o.files, problems, false)
		}
		return refused(err.Error())
	}
	if !made.Same {
		real := rec.Code
		if real == "" {
			real = "ok"
		}
		return refused(fmt.Sprintf("nothing is written: the real call ended with %s, and of the fixture the contract makes %s", real, made.Got), made.Reason,
			"a stand-in may not fit; --keep NAME leaves the values of one member as they are")
	}
	path, err := a.newFixture(o.files.contracts, rec, made)
	if err != nil {
		return err
	}
	a.note("look through the file: what a sentence says about somebody does not show by its form")
	if o.json {
		return a.printJSON(map[string]any{"file": path, "kind": made.Kind, "got": made.Got, "reason": made.Reason, "replaced": made.Replaced, "dropped_headers": made.Dropped, "request_id": o.show.id})
	}
	rows := []row{{cc(dimmed, "fixture"), cc(bold, path)}, {cc(dimmed, "the contract"), c(took(made))}, {cc(dimmed, "request id"), c(o.show.id)}}
	for _, kind := range sortedKeys(made.Replaced) {
		rows = append(rows, row{cc(dimmed, "stand-ins"), c(fmt.Sprintf("%s: %d", kind, made.Replaced[kind]))})
	}
	if len(made.Dropped) > 0 {
		rows = append(rows, row{cc(dimmed, "dropped"), c(strings.Join(made.Dropped, ", "))})
	}
	a.pairs(rows)
	return nil
}

func took(made contracttest.Recorded) string {
	if made.Kind == "accepted" {
		return "takes it"
	}
	return "makes " + made.Got + " of it, as of the real answer"
}

// fixtureMode lets a repository's other users read a fixture.
const fixtureMode = 0o644

// mostFixtures are the recordings of one day that get a name of their own.
const mostFixtures = 1000

// newFixture writes a file that was not there.
func (a *app) newFixture(contracts string, rec contracttest.Recording, made contracttest.Recorded) (string, error) {
	dir := filepath.Join(contracts, rec.Action, "fixtures")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", usage(fmt.Sprintf("cannot make %s: %v", dir, plainCause(err)))
	}
	name := made.Kind + "-recorded-" + rec.Sent.UTC().Format(time.DateOnly)
	for n := 1; n <= mostFixtures; n++ {
		path := filepath.Join(dir, name+".yaml")
		if n > 1 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", name, n))
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fixtureMode)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			_, err = f.Write(made.Text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return "", usage(fmt.Sprintf("cannot write %s: %v", path, plainCause(err)))
		}
		return path, nil
	}
	return "", refused(fmt.Sprintf("%s has %d recordings of that day", dir, mostFixtures))
}
