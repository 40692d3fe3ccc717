package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"chatelaine/internal/auditlog"
)

// auditFilter chooses among what a record holds. The zero value takes everything;
// each flag that is given narrows.
type auditFilter struct {
	since, until string
	from, to     time.Time // parsed; zero: no bound; to is not in it

	names map[string]*[]string // by flag

	saw map[string]map[string]bool // by flag: names that there are, for who mistyped one
}

// The flags that name things, in the order of the help.
const (
	byAgent   = "agent"
	byAction  = "action"
	byCode    = "code"
	byTarget  = "target"
	bySession = "session"
)

var byNames = []string{byAgent, byAction, byCode, byTarget, bySession}

var byHelp = map[string]string{
	byAgent:   "only of this agent; may be given again",
	byAction:  "only of this action; may be given again",
	byCode:    "only with this code, such as OK or APPROVAL_DENIED; may be given again",
	byTarget:  "only of this target; may be given again",
	bySession: "only of this session, by its id; may be given again",
}

// maxSaw bounds the names kept to find the nearest one.
const maxSaw = 1000

func (f *auditFilter) add(flags *pflag.FlagSet, ends bool) {
	f.names, f.saw = map[string]*[]string{}, map[string]map[string]bool{}
	flags.StringVar(&f.since, "since", "", "only from this time on: a date, RFC 3339, or a span back from now such as 2h or 3d")
	if ends {
		flags.StringVar(&f.until, "until", "", "only before this time, in the same forms; a date takes that whole day in")
	}
	for _, name := range byNames {
		f.names[name], f.saw[name] = new([]string), map[string]bool{}
		flags.StringSliceVar(f.names[name], name, nil, byHelp[name])
	}
}

// parse reads the flags once. now is in the time zone of the person.
func (f *auditFilter) parse(now time.Time) error {
	var err error
	if f.since != "" {
		if f.from, err = parseWhen(f.since, now, false); err != nil {
			return badWhen("since", f.since, err)
		}
	}
	if f.until != "" {
		if f.to, err = parseWhen(f.until, now, true); err != nil {
			return badWhen("until", f.until, err)
		}
		if !f.from.IsZero() && !f.from.Before(f.to) {
			return usage(fmt.Sprintf("nothing is between --since %s and --until %s: the first is not before the second", f.since, f.until))
		}
	}
	for _, name := range byNames {
		for _, v := range *f.names[name] {
			if strings.TrimSpace(v) != v || v == "" {
				return usage(fmt.Sprintf("--%s cannot be %q: give a name without spaces around it", name, v))
			}
		}
	}
	return nil
}

func badWhen(flag, text string, err error) error {
	return usage(fmt.Sprintf("--%s cannot be %q: %v", flag, text, err),
		"give a date (2026-11-30), a time (2026-11-30T14:00, or RFC 3339 with a zone) or a span back from now (90m, 2h, 3d, 1w)")
}

// named says whether an event or a call has the names asked for.
func (f *auditFilter) named(actor, action, code, target, session string) bool {
	ok := true
	for i, v := range []string{actor, action, code, target, session} {
		want := *f.names[byNames[i]]
		if len(want) == 0 {
			continue
		}
		f.see(byNames[i], v)
		same := func(w string) bool { return w == v }
		if byNames[i] == byCode {
			same = func(w string) bool { return strings.EqualFold(w, v) }
		}
		ok = slices.ContainsFunc(want, same) && ok
	}
	return ok
}

// see notes a name that the record has.
func (f *auditFilter) see(flag, name string) {
	if saw := f.saw[flag]; name != "" && len(saw) < maxSaw {
		saw[name] = true
	}
}

// event says whether an event is asked for.
func (f *auditFilter) event(e *auditlog.Event) bool {
	return f.named(e.Actor, e.Action, e.Status, e.Target, e.SessionID) && f.overlaps(e.Wall, e.Wall)
}

// call says whether a call is asked for: by where it stands now, and by any of its time.
func (f *auditFilter) call(c *auditlog.Activity) bool {
	return f.named(c.Actor, c.Action, c.Status, c.Target, c.SessionID) && f.overlaps(c.Started, c.Last())
}

// session says whether a session is asked for: by its agent, its id and its time, and
// by its calls where the flags choose among calls.
func (f *auditFilter) session(s *auditlog.SessionSum) bool {
	narrowed := len(*f.names[byAction])+len(*f.names[byCode])+len(*f.names[byTarget]) > 0
	if narrowed && s.Calls+s.Refused == 0 {
		return false
	}
	agents, ids := *f.names[byAgent], *f.names[bySession]
	f.see(byAgent, s.Actor)
	f.see(bySession, s.SessionID)
	return f.overlaps(s.Opened, s.Last) && (len(agents) == 0 || slices.Contains(agents, s.Actor)) && (len(ids) == 0 || slices.Contains(ids, s.SessionID))
}

// overlaps says whether something that lasted from first to last is in the time asked
// for.
func (f *auditFilter) overlaps(first, last time.Time) bool {
	return (f.from.IsZero() || !last.Before(f.from)) && (f.to.IsZero() || first.Before(f.to))
}

// nothing is what to say where nothing was found: a name that the record does not have
// is mostly mistyped.
func (f *auditFilter) nothing(what string) []string {
	out := []string{"no " + what + " matches"}
	for _, name := range byNames {
		saw := f.saw[name]
		for _, v := range *f.names[name] {
			if name == byCode {
				v = strings.ToUpper(v)
			}
			if saw[v] {
				continue
			}
			line := fmt.Sprintf("the record names no %s %s", name, printable(v))
			if near := nearest(v, sortedKeys(saw)); near != "" {
				line += fmt.Sprintf("; did you mean --%s %s?", name, printable(near))
			}
			out = append(out, line)
		}
	}
	return out
}
