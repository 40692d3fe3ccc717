package main

import (
	"context"
	"errors"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"chatelaine/internal/auditlog"
)

// followPoll is how often the record is looked at where nothing told of a change: not
// every file system does, such as one of another machine.
const followPoll = time.Second

// auditFollow is one run of the command.
type auditFollow struct {
	recordAt
	filter auditFilter
	json   bool
}

func (a *app) auditFollowCmd() *cobra.Command {
	o := auditFollow{}
	cmd := &cobra.Command{
		Use: "follow --key FILE", Short: "Print events of the record as they are written",
		Long: `Print events of the record as they become durable, one a line, until interrupted, which
ends it with 0. With --since it begins with those that the record has from then on. It goes
on over full files and restarts of the daemon. Without --since the newest file and what comes
are checked; audit verify checks all. --json prints one JSON object a line, in the form of
audit export.
` + recordHelp,
		Example: "  chatelaine audit follow --key recovery.key\n  chatelaine audit follow --since 1h --agent build-worker --key /var/lib/chatelaine/audit-key.age --json",
		Args:    exactly(),
		RunE:    do(func(cmd *cobra.Command, _ []string) error { return a.followRecord(cmd, o) }),
	}
	o.add(cmd.Flags())
	o.filter.add(cmd.Flags(), false)
	jsonFlag(cmd, &o.json)
	return cmd
}

func (a *app) followRecord(cmd *cobra.Command, o auditFollow) error {
	if err := o.filter.parse(time.Now()); err != nil {
		return err
	}
	key, err := o.open(a, cmd)
	if err != nil {
		return err
	}
	wait, stop := folderWait(o.dir)
	defer stop()
	s := newSink(a.out)
	table := blocks{sink: s, colour: a.colour, heading: []string{"time", "type", "agent", "action", "code", "target", "request", "what"}, every: 1}
	opened, noted := false, false
	err = auditlog.Follow(cmd.Context(), o.dir, key, auditlog.FollowOptions{
		All: !o.filter.from.IsZero(),
		Wait: func(ctx context.Context) error {
			if !noted {
				a.note("following the record in %s; interrupt to end", printable(o.dir))
				noted = true
			}
			return wait(ctx)
		},
	}, func(e auditlog.Event, old bool) error {
		opened = true
		if old && o.filter.from.IsZero() || !o.filter.event(&e) {
			return nil
		}
		if err := o.print(s, &table, &e); err != nil {
			return &outputError{err}
		}
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return o.readError(opened, err)
}

func (o *auditFollow) print(s sink, table *blocks, e *auditlog.Event) error {
	var err error
	if o.json {
		err = s.line(viewOf(e, false))
	} else {
		err = table.add(eventRow(e))
	}
	if err != nil {
		return err
	}
	return s.flush() // whoever reads along sees it now
}

func eventRow(e *auditlog.Event) row {
	return row{c(clock(e.Wall)), c(e.Type), c(dash(e.Actor)), cc(bold, dash(e.Action)), c(dash(e.Status)), c(dash(e.Target)), c(dash(e.CallID)), c(eventText(e))}
}

// eventText says in a few words what an event is about, besides its columns.
func eventText(e *auditlog.Event) string {
	step, _ := e.Detail["step"].(string)
	if e.Detail["kind"] == auditlog.KindExchange {
		step += " (exchange)"
	}
	sentence, _ := e.Detail["sentence"].(string)
	text := ""
	for _, s := range []string{e.Decision, step, sentence, e.Rule} {
		if s != "" && text != "" {
			text += ": "
		}
		text += s
	}
	return text
}

// folderWait gives what waits for a change in a folder, for a while at most. Where the
// machine does not tell of changes it only waits.
func folderWait(dir string) (wait func(context.Context) error, stop func()) {
	var changes <-chan fsnotify.Event
	var failures <-chan error
	stop = func() {}
	if w, err := fsnotify.NewWatcher(); err == nil {
		changes, failures = w.Events, w.Errors
		stop = func() { w.Close() }
		if w.Add(dir) != nil {
			changes, failures = nil, nil
		}
	}
	return func(ctx context.Context) error {
		timer := time.NewTimer(followPoll)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changes:
		case <-failures:
		case <-timer.C:
		}
		return nil
	}, stop
}
