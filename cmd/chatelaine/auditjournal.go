package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/auditlog"
)

// auditJournal is one run of audit activity or audit sessions.
type auditJournal struct {
	recordAt
	filter     auditFilter
	unresolved bool
	json       bool
}

// filterHelp ends the long text of what takes all filters, recordHelp that of every
// command that opens the record.
const (
	filterHelp = `
Times without a zone are of this machine's, as the tables show them; --until with a date
takes that whole day in.` + recordHelp
	recordHelp = `
It needs no daemon, only the folder, a copy is enough, and a key: the recovery key, or
audit-key.age of the state folder, which the operator passphrase opens. Where the record
is damaged, what stands before is printed, and it ends with 1.`
)

func (a *app) auditActivityCmd() *cobra.Command {
	o := auditJournal{}
	cmd := &cobra.Command{
		Use: "activity --key FILE", Short: "List every call of the record, and how it ended",
		Long: `List every call of the record in order, and where it stands: refused, in progress,
finished, resolved by a person, or unresolved, which is one that may have happened: its
end does not tell, or there is none since it is on its way or the daemon stopped. An
exchange of an identity's secret for a token is shown as a step of the call, and is no
end of it. Refusals are summed up below. At most 10,000 calls are held at once: one that
goes on after so many others stands there twice, the second time marked as continued.
` + filterHelp,
		Example: "  chatelaine audit activity --since 2h --key recovery.key\n  chatelaine audit activity --since 2026-11-01 --until 2026-11-30 --agent build-worker --code OK --key recovery.key --json\n  chatelaine audit activity --unresolved --key /var/lib/chatelaine/audit-key.age",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.readJournal(cmd, &o, a.activityOut(&o))
		}),
	}
	o.add(cmd.Flags())
	o.filter.add(cmd.Flags(), true)
	cmd.Flags().BoolVar(&o.unresolved, "unresolved", false, "only those that may or may not have happened")
	jsonFlag(cmd, &o.json)
	return cmd
}

func (a *app) auditSessionsCmd() *cobra.Command {
	o := auditJournal{}
	cmd := &cobra.Command{
		Use: "sessions --key FILE", Short: "List every session of the record, and what it did",
		Long: `List every session of the record in order: which agent, from which process, from when
to when, who authorised it, how it ended, and its calls by code, with refusals summed up.
With --action, --code or --target only such calls are counted, and only sessions that have
any are listed. At most 10,000 sessions and as many calls are held at once.
` + filterHelp,
		Example: "  chatelaine audit sessions --since yesterday --key recovery.key\n  chatelaine audit sessions --agent build-worker --code TARGET_NOT_ALLOWED --key recovery.key --json",
		Args:    exactly(),
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			return a.readJournal(cmd, &o, a.sessionsOut(&o))
		}),
	}
	o.add(cmd.Flags())
	o.filter.add(cmd.Flags(), true)
	jsonFlag(cmd, &o.json)
	return cmd
}

// journalOut is where a journal goes: a table or JSON.
type journalOut struct {
	what, list string // of one, and of many as the member of the JSON form
	sink       sink
	table      blocks
	json       listJSON
	asJSON     bool
	n          int
	refusals   auditlog.Refusals
	sumsUp     bool // refusals are listed too
	journal    *auditlog.Journal
}

func (a *app) newJournalOut(o *auditJournal, what, list string, heading ...string) *journalOut {
	s := newSink(a.out)
	return &journalOut{
		what: what, list: list, sink: s, asJSON: o.json,
		table: blocks{sink: s, colour: a.colour, heading: heading, every: blockRows}, json: listJSON{sink: s},
	}
}

// add writes one entry.
func (j *journalOut) add(v any, r func() row) error {
	j.n++
	if !j.asJSON {
		return j.table.add(r())
	}
	return j.json.add(v)
}

func (a *app) activityOut(o *auditJournal) *journalOut {
	out := a.newJournalOut(o, "call", "calls", "started", "ended", "agent", "state", "code", "action", "target", "request", "steps")
	out.sumsUp = true
	out.journal = auditlog.NewJournal(auditlog.DefaultHold, func(c auditlog.Activity) error {
		if !o.filter.call(&c) || o.unresolved && c.State != auditlog.CallUnresolved {
			return nil
		}
		return out.add(c, func() row { return callRow(&c) })
	}, nil, nil)
	return out
}

func callRow(x *auditlog.Activity) row {
	state := stateCell(x.State)
	if x.Continues {
		state.text += ", continued"
	}
	return row{c(clock(x.Started)), c(clock(x.Ended)), c(dash(x.Actor)), state, c(dash(x.Status)), cc(bold, dash(x.Action)), c(dash(x.Target)), c(x.CallID), c(dash(stepsText(x.Steps)))}
}

// stepsText is the way of a call on one line.
func stepsText(steps []auditlog.Step) string {
	var out []string
	for _, s := range steps {
		text := s.Step
		if s.Kind == auditlog.KindExchange {
			text += " (exchange)"
		}
		if s.Sends > 1 {
			text += fmt.Sprintf(" x%d", s.Sends)
		}
		if s.Upstream != 0 {
			text += fmt.Sprintf(" %d", s.Upstream)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (a *app) sessionsOut(o *auditJournal) *journalOut {
	out := a.newJournalOut(o, "session", "sessions", "opened", "ended", "agent", "state", "calls", "refused", "unresolved", "codes", "authorised by", "process", "session")
	out.journal = auditlog.NewJournal(auditlog.DefaultHold, nil, func(s auditlog.SessionSum) error {
		if !o.filter.session(&s) {
			return nil
		}
		return out.add(s, func() row { return sessionRow(&s) })
	}, o.filter.call)
	return out
}

func sessionRow(s *auditlog.SessionSum) row {
	state, by, process := stateCell(s.State), "-", s.Executable
	if s.Continues {
		state.text += ", continued"
	}
	for _, d := range s.Decisions {
		if d.Decision == "session.authorize" {
			by = d.By
		}
	}
	if s.PID != 0 {
		process = strings.TrimSpace(fmt.Sprintf("%s %d", process, s.PID))
	}
	return row{c(clock(s.Opened)), c(clock(s.Closed)), cc(bold, dash(s.Actor)), state, c(fmt.Sprint(s.Calls)), c(fmt.Sprint(s.Refused)), c(fmt.Sprint(s.Unresolved)),
		c(dash(countsText(s.Codes))), c(by), c(dash(process)), c(s.SessionID)}
}

// countsText is "CODE 3, OTHER 1", by name.
func countsText(m map[string]int) string {
	var out []string
	for _, k := range sortedKeys(m) {
		out = append(out, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(out, ", ")
}

// readJournal folds the record. What was folded before an error is printed first.
func (a *app) readJournal(cmd *cobra.Command, o *auditJournal, out *journalOut) error {
	if err := o.filter.parse(time.Now()); err != nil {
		return err
	}
	key, err := o.open(a, cmd)
	if err != nil {
		return err
	}
	if o.json {
		out.json.begin(out.list)
	}
	readErr := o.read(cmd.Context(), key, func(e *auditlog.Event) error {
		if out.sumsUp && !o.unresolved && o.filter.event(e) {
			out.refusals.Add(e)
		}
		return out.journal.Add(e)
	})
	if err := out.end(a, readErr == nil); err != nil {
		return err
	}
	if readErr == nil && out.n == 0 {
		for _, line := range o.filter.nothing(out.what) {
			a.note("%s", line)
		}
	}
	return readErr
}

// end writes what is still held, and the refusals.
func (j *journalOut) end(a *app, complete bool) error {
	if err := j.journal.End(); err != nil {
		return err
	}
	refusals := j.refusals.List()
	if j.asJSON {
		j.json.close()
		if j.sumsUp {
			if err := j.json.member("refusals", refusals); err != nil {
				return err
			}
		}
		if err := j.json.member("complete", complete); err != nil {
			return err
		}
		return j.json.end()
	}
	if err := j.table.end(); err != nil {
		return err
	}
	if len(refusals) > 0 {
		if j.n > 0 {
			j.sink.w.WriteByte('\n')
		}
		sums := blocks{sink: j.sink, colour: a.colour, heading: []string{"refused", "agent", "action", "code", "first", "last", "newest reason"}, every: blockRows}
		for _, r := range refusals {
			if err := sums.add(row{c(fmt.Sprint(r.Count)), c(dash(r.Actor)), cc(bold, dash(r.Action)), c(dash(r.Code)), c(clock(r.First)), c(clock(r.Last)), c(dash(r.Rule))}); err != nil {
				return err
			}
		}
		if err := sums.end(); err != nil {
			return err
		}
	}
	return j.sink.flush()
}
