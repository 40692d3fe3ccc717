package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"chatelaine/internal/auditlog"
)

// auditShow is one run of the command.
type auditShow struct {
	recordAt
	id        string
	raw, json bool
}

func (a *app) auditShowCmd() *cobra.Command {
	o := auditShow{}
	cmd := &cobra.Command{
		Use: "show REQUEST_ID --key FILE", Short: "Read what the record holds of one call",
		Long: `Read what the record holds of one call, in order: what was asked and sent, what
answered, how it ended and why an answer was refused. It needs no daemon, only the
folder and a key: the recovery key that init printed or wrote, or audit-key.age of
the state folder, which the operator passphrase opens. The bytes of an answer are
shown only with --raw, escaped, and with --json in base64. It ends with 1 where the
record has no such call or is damaged, 2 where the key or the folder is wrong.`,
		Example: "  chatelaine audit show act_01JABCDEFGH --key recovery.key\n  chatelaine audit show act_01JABCDEFGH --key /var/lib/chatelaine/audit-key.age --audit /var/lib/chatelaine/audit --raw",
		Args:    exactly("REQUEST_ID"),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return a.showFromRecord(cmd, o)
		}),
	}
	f := cmd.Flags()
	o.add(f)
	f.BoolVar(&o.raw, "raw", false, "also show the bytes of the answers; nobody has checked them")
	jsonFlag(cmd, &o.json)
	return cmd
}

func (a *app) showFromRecord(cmd *cobra.Command, o auditShow) error {
	key, err := o.open(a, cmd)
	if err != nil {
		return err
	}
	found, opened, readErr := o.read(cmd.Context(), key)
	if errors.Is(readErr, context.Canceled) {
		return readErr
	}
	if len(found) > 0 {
		if err := a.printEvents(found, o, readErr == nil); err != nil {
			return err
		}
	}
	return o.verdict(len(found), opened, readErr)
}

// resolves are the decisions about a call: what a person found out, and that it did
// not count.
var resolves = map[string]bool{"call.resolve": true, "call.resolve-refused": true}

// read gathers the events of the call. opened says whether the key opened
// anything at all.
func (o auditShow) read(ctx context.Context, key auditlog.Identity) (found []auditlog.Event, opened bool, err error) {
	err = auditlog.Read(o.dir, key, func(_ uint64, e auditlog.Event) error {
		opened = true
		if e.CallID == o.id || (e.Type == auditlog.TypeConfig && resolves[e.Decision] && e.Target == o.id) {
			found = append(found, e)
		}
		return ctx.Err()
	})
	return found, opened, err
}

// verdict says how the command ends, after everything found was printed.
func (o auditShow) verdict(found int, opened bool, err error) error {
	if err == nil && found == 0 {
		return refused(fmt.Sprintf("the record in %s holds no call %s", o.dir, o.id), "chatelaine calls list shows the ids that the daemon remembers")
	}
	return o.readError(opened, err)
}

// eventView is one event for a program.
type eventView struct {
	Seq       uint64         `json:"seq"`
	EventID   string         `json:"event_id"`
	Type      string         `json:"type"`
	Time      time.Time      `json:"time"`
	BootID    string         `json:"boot_id,omitzero"`
	Mono      int64          `json:"mono,omitzero"` // nanoseconds on the boot's clock
	SessionID string         `json:"session_id,omitzero"`
	CallID    string         `json:"call_id,omitzero"`
	IntentSeq uint64         `json:"intent_seq,omitzero"`
	Actor     string         `json:"actor,omitzero"`
	Target    string         `json:"target,omitzero"`
	Action    string         `json:"action,omitzero"`
	Decision  string         `json:"decision,omitzero"`
	Rule      string         `json:"rule,omitzero"`
	Status    string         `json:"status,omitzero"`
	Detail    jsontext.Value `json:"detail,omitzero"`
	RawBytes  int            `json:"raw_bytes,omitzero"`
	Raw       []byte         `json:"raw,omitzero"` // base64; only with --raw
}

// printEvents prints what was found; complete says whether the whole record was
// read.
func (a *app) printEvents(found []auditlog.Event, o auditShow, complete bool) error {
	if !o.json {
		for i, e := range found {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			a.printEvent(e, o.raw)
		}
		return nil
	}
	out := []eventView{}
	for _, e := range found {
		out = append(out, viewOf(&e, o.raw))
	}
	return a.printJSON(map[string]any{"request_id": o.id, "complete": complete, "events": out})
}

func viewOf(e *auditlog.Event, raw bool) eventView {
	v := eventView{
		Seq: e.Seq, EventID: e.EventID, Type: e.Type, Time: e.Wall, BootID: e.BootID, Mono: e.Mono,
		SessionID: e.SessionID, CallID: e.CallID, IntentSeq: e.IntentSeq, Actor: e.Actor, Target: e.Target, Action: e.Action,
		Decision: e.Decision, Rule: e.Rule, Status: e.Status, RawBytes: len(e.Body),
	}
	if e.Detail != nil {
		v.Detail = jsonOf(e.Detail)
	}
	if raw {
		v.Raw = e.Body
	}
	return v
}

func (a *app) printEvent(e auditlog.Event, raw bool) {
	fmt.Fprintf(a.out, "%s  %s  %s  %s\n", a.paint(bold, printable(e.Type)), clock(e.Wall), a.paint(dimmed, fmt.Sprintf("sequence %d", e.Seq)), a.paint(dimmed, printable(e.EventID)))
	var rows []row
	add := func(label string, value cell) {
		if value.text != "" {
			rows = append(rows, row{cc(dimmed, label), value})
		}
	}
	add("by", c(e.Actor))
	add("action", cc(bold, e.Action))
	add("target", c(e.Target))
	add("decision", c(e.Decision))
	add("code", c(e.Status))
	add("reason", c(e.Rule))
	rows = append(rows, detailRows("", e.Detail)...)
	writeTable(a.out, a.colour, rows, "  ")
	if e.Body == nil {
		return
	}
	if !raw {
		fmt.Fprintf(a.out, "  %d bytes came, headers included; --raw shows them\n", len(e.Body))
		return
	}
	fmt.Fprintf(a.out, "  %d bytes came, headers included; nobody has checked them:\n", len(e.Body))
	for line := range bytes.Lines(e.Body) {
		fmt.Fprintln(a.out, "  | "+escapeRaw(bytes.TrimSuffix(line, []byte("\n"))))
	}
}

// detailFirst is the order in which a person reads the members of an event; the
// others follow by name.
var detailFirst = []string{
	"step", "sentence", "input", "identity", "endpoint", "contract_version", "contract_digest", "upstream_status",
	"body_bytes", "body_sha256", "row", "rejection", "layer", "rule", "schema_path", "instance_path", "message", "cause",
}

// detailRows are the members of a detail, one a row; those of a rejection each
// have their own.
func detailRows(prefix string, detail map[string]any) []row {
	rank := func(k string) int {
		if i := slices.Index(detailFirst, k); i >= 0 {
			return i
		}
		return len(detailFirst)
	}
	keys := make([]string, 0, len(detail))
	for k := range detail {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y string) int {
		if d := rank(x) - rank(y); d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	var out []row
	for _, k := range keys {
		if inner, ok := detail[k].(map[string]any); ok && k == "rejection" {
			out = append(out, detailRows("rejection.", inner)...)
			continue
		}
		if text := compact(jsonOf(detail[k])); text != "" {
			out = append(out, row{cc(dimmed, prefix+k), c(text)})
		}
	}
	return out
}

// jsonOf writes a value that came out of JSON back. It goes through the package
// that the record reads with, whose numbers it keeps.
func jsonOf(v any) jsontext.Value {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return jsontext.Value(`null`)
	}
	return jsontext.Value(bytes.TrimSpace(b.Bytes()))
}

// escapeRaw makes one line of unchecked bytes safe for a terminal: what does
// not show itself is written as an escape, bytes that are no text as \x.
func escapeRaw(line []byte) string {
	var b strings.Builder
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, line[0])
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case hidden(r) || !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		line = line[n:]
	}
	return b.String()
}
