package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"chatelaine/internal/auditlog"
)

// The formats of an export.
const (
	formatLines = "jsonl"
	formatCSV   = "csv"
)

// exportMode keeps what was sealed from other users.
const exportMode = 0o600

// auditExport is one run of the command.
type auditExport struct {
	recordAt
	filter      auditFilter
	format, out string
	raw         bool
}

func (a *app) auditExportCmd() *cobra.Command {
	o := auditExport{}
	cmd := &cobra.Command{
		Use: "export --key FILE", Short: "Write the events of the record as JSON lines or CSV",
		Long: `Write the events of the record, opened, in order, one a line, as JSON (--format jsonl)
or for a spreadsheet (--format csv). Nothing is held but one file of the record. The bytes
of answers are written only with --raw, in base64, as JSON; nobody has checked them.

In the CSV form every cell is in quotes, and a ' stands before what begins with = + - or @,
also after a semicolon, so that no spreadsheet takes text of an agent or of a remote system
for a formula; detail is JSON in one cell. For programs take JSON lines, which change nothing.

What comes out is as private as the record is sealed. --out makes a file that nobody else
may read, and overwrites none.
` + filterHelp,
		Example: "  chatelaine audit export --key recovery.key --out events.jsonl\n  chatelaine audit export --format csv --since 2026-11-01 --until 2026-11-30 --key recovery.key --out november.csv\n  chatelaine audit export --action deploy_release --code OUTCOME_UNKNOWN --key recovery.key",
		Args:    exactly(),
		RunE:    do(func(cmd *cobra.Command, _ []string) error { return a.exportRecord(cmd, o) }),
	}
	f := cmd.Flags()
	o.add(f)
	o.filter.add(f, true)
	f.StringVar(&o.format, "format", formatLines, "jsonl or csv")
	f.StringVar(&o.out, "out", "", "write into this new file instead of the standard output")
	f.BoolVar(&o.raw, "raw", false, "also the bytes of the answers, in base64; only as JSON lines")
	return cmd
}

func (a *app) exportRecord(cmd *cobra.Command, o auditExport) error {
	if err := o.check(); err != nil {
		return err
	}
	key, err := o.open(a, cmd)
	if err != nil {
		return err
	}
	to, done, err := o.create(a.out)
	if err != nil {
		return err
	}
	s, n := newSink(to), 0
	write := func(e *auditlog.Event) error { return s.line(viewOf(e, o.raw)) }
	if o.format == formatCSV {
		write = func(e *auditlog.Event) error { return s.csvLine(csvCells(e)) }
		if err := s.csvLine(csvHeading); err != nil {
			return errors.Join(err, done())
		}
	}
	readErr := o.read(cmd.Context(), key, func(e *auditlog.Event) error {
		if !o.filter.event(e) {
			return nil
		}
		n++
		return write(e)
	})
	if err := s.flush(); err != nil {
		return err
	}
	if err := done(); err != nil {
		return s.failed(err)
	}
	if readErr == nil && n == 0 {
		for _, line := range o.filter.nothing("event") {
			a.note("%s", line)
		}
	}
	return readErr
}

func (o *auditExport) check() error {
	switch o.format {
	case formatLines, formatCSV:
	default:
		var hints []string
		if near := nearest(o.format, []string{formatLines, formatCSV}); near != "" {
			hints = append(hints, "did you mean --format "+near+"?")
		}
		return usage(fmt.Sprintf("--format cannot be %q: it takes %s or %s", o.format, formatLines, formatCSV), hints...)
	}
	if o.raw && o.format == formatCSV {
		return usage("--raw is only for --format " + formatLines + ": bytes have no place in a spreadsheet")
	}
	return o.filter.parse(time.Now())
}

// create gives where to write, and what ends that.
func (o *auditExport) create(out io.Writer) (io.Writer, func() error, error) {
	if o.out == "" {
		return out, func() error { return nil }, nil
	}
	f, err := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, exportMode)
	if errors.Is(err, os.ErrExist) {
		return nil, nil, usage(o.out+" is there already, and is not overwritten", "name another file with --out")
	}
	if err != nil {
		return nil, nil, usage(fmt.Sprintf("cannot make %s: %v", o.out, plainCause(err)))
	}
	return f, f.Close, nil
}

var csvHeading = []string{"sequence", "time", "type", "session_id", "call_id", "intent_sequence", "agent", "action", "target", "code", "decision", "rule", "event_id", "raw_bytes", "detail"}

func csvCells(e *auditlog.Event) []string {
	out := []string{strconv.FormatUint(e.Seq, 10), e.Wall.Format(time.RFC3339Nano), csvText(e.Type), csvText(e.SessionID), csvText(e.CallID), "",
		csvText(e.Actor), csvText(e.Action), csvText(e.Target), csvText(e.Status), csvText(e.Decision), csvText(e.Rule), csvText(e.EventID), "", ""}
	if e.IntentSeq != 0 {
		out[5] = strconv.FormatUint(e.IntentSeq, 10)
	}
	if e.Body != nil {
		out[13] = strconv.Itoa(len(e.Body))
	}
	if e.Detail != nil {
		out[14] = csvJSON(jsonOf(e.Detail))
	}
	return out
}
