package auditlog

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAppendVerifyRead(t *testing.T) {
	dir, last := sampleLog(t, 50)
	r := Verify(dir)
	if r.ExitCode() != 0 || r.Last != last || r.First != 1 || r.Verified != last {
		t.Fatalf("%+v", r)
	}
	want := 0
	err := Read(dir, testKeys()[1], func(seq uint64, ev Event) error {
		if ev.CallID != testEvent(want).CallID || ev.Seq != seq {
			t.Errorf("event %d is %+v", want, ev)
		}
		want++
		return nil
	})
	if err != nil || want != 50 {
		t.Fatalf("read %d events: %v", want, err)
	}
}

func TestEventRoundTrip(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	in := []Event{
		{Type: TypeIntent, EventID: "evt_1", SessionID: "s", CallID: "c", Wall: time.Unix(1, 2).UTC(), BootID: "b", Mono: 7,
			Actor: "a", Target: "t", Action: "x", Decision: "allow", Rule: "r", Status: "st",
			Detail: map[string]any{"s": "<&>\u0000", "l": []any{"1", true, nil}}},
		{Type: TypeAnswer, EventID: "evt_2", IntentSeq: 9, Wall: time.Unix(3, 0).UTC(), BootID: "b", Mono: 8, Body: []byte("\x00raw\x00\xff\x00")},
		{Type: TypeAnswer, EventID: "evt_3", Wall: time.Unix(3, 0).UTC(), BootID: "b", Mono: 8, Body: []byte{}},
	}
	r := mustAppend(t, l, in...)
	if r.Seq-r.First != 2 {
		t.Fatalf("receipt %+v", r)
	}
	i := 0
	err := Read(dir, testKeys()[0], func(seq uint64, ev Event) error {
		in[i].Seq = r.First + uint64(i)
		if !reflect.DeepEqual(ev, in[i]) {
			t.Errorf("got  %#v\nwant %#v", ev, in[i])
		}
		i++
		return nil
	})
	if err != nil || i != len(in) {
		t.Fatalf("%d events, %v", i, err)
	}
	recent := l.Recent()
	if len(recent) != 3 || recent[1].Body != nil || recent[2].Seq != r.Seq {
		t.Fatalf("ring: %+v", recent)
	}
}

func TestAppendRefusals(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	cases := []struct {
		name string
		p    *Pending
		want string
	}{
		{"nothing", l.Append(), "nothing to append"},
		{"no type", l.Append(Event{}), `"" is no event type`},
		{"unknown type", l.Append(Event{Type: "note"}), `"note" is no event type`},
		{"not JSON", l.Append(Event{Type: TypeDeny, Detail: map[string]any{"f": func() {}}}), "not JSON"},
		{"too large", l.Append(Event{Type: TypeAnswer, Body: make([]byte, 64<<10)}), ErrTooLarge.Error()},
		{"reserve too large", l.AppendIntent(Event{Type: TypeIntent}, 64<<10), ErrTooLarge.Error()},
		{"too many", l.Append(make([]Event, DefaultEpochRecords+1)...), "no event type"},
	}
	for _, c := range cases {
		if _, err := c.p.Wait(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	l.Close()
	if _, err := l.Append(testEvent(0)).Wait(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestRotationAndEpochs(t *testing.T) {
	dir := newDir(t)
	o := smallOptions(dir)
	o.EpochRecords = 16
	l := mustOpen(t, o)
	for i := range 400 {
		mustAppend(t, l, testEvent(i))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(segments(t, dir)); n < 3 {
		t.Fatalf("%d segments", n)
	}
	sealed := 0
	for _, s := range layout(t, dir) {
		switch s.kind {
		case kindEpoch:
			sealed = 0
		case kindSealed:
			if sealed++; sealed > 16 {
				t.Fatalf("record %d is number %d of its epoch", s.seq, sealed)
			}
		}
	}
	if r := Verify(dir); r.ExitCode() != 0 {
		t.Fatal(r.Text())
	}
}

func TestEpochAge(t *testing.T) {
	dir := newDir(t)
	o := smallOptions(dir)
	o.EpochAge = time.Nanosecond
	l := mustOpen(t, o)
	mustAppend(t, l, testEvent(0))
	mustAppend(t, l, testEvent(1))
	if e := l.State().Epoch; e != 4 {
		t.Fatalf("epoch %d, want one for each of create, open and two batches", e)
	}
	l.Close()
	if r := Verify(dir); r.ExitCode() != 0 {
		t.Fatal(r.Text())
	}
}

func TestOneWriter(t *testing.T) {
	dir := newDir(t)
	l := mustOpen(t, smallOptions(dir))
	if _, err := Open(smallOptions(dir)); !errors.Is(err, ErrLocked) {
		t.Fatalf("second writer: %v", err)
	}
	if err := Create(dir, testRecipients()); !errors.Is(err, ErrLocked) {
		t.Fatalf("create beside a writer: %v", err)
	}
	l.Close()
	if err := Create(dir, testRecipients()); !errors.Is(err, ErrExists) {
		t.Fatalf("create over a record: %v", err)
	}
	l = mustOpen(t, smallOptions(dir))
	l.Close()
}

func TestRing(t *testing.T) {
	r := ring{max: 3}
	for i := range 5 {
		r.add([]Event{{Seq: uint64(i)}})
	}
	got := r.all()
	if len(got) != 3 || got[0].Seq != 2 || got[2].Seq != 4 {
		t.Fatalf("%+v", got)
	}
}
