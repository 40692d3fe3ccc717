package executor

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"chatelaine/internal/contracttest/upstream"
	"chatelaine/internal/fault"
	"chatelaine/internal/testkit"
)

// filler puts a credential into the body's hole.
type filler struct {
	text  string
	out   Outgoing
	then  func(Outgoing) error
	quiet bool // its own error is kept to itself
}

func (f *filler) Attach(o Outgoing, _ Connection) error {
	f.out = o
	err := o.FillBody(appends(f.text))
	if err == nil && f.then != nil {
		err = f.then(o)
	}
	if f.quiet {
		return nil
	}
	return err
}

const (
	jsonBody = `{"key":"","text":"ä"}`
	formBody = "to=%2B49&token=&text=x"
)

// holed is a change whose body has a hole.
func holed(to place, body, before string, form bool) step {
	s := change(to)
	s.body = []byte(body)
	s.hole = &Hole{Offset: strings.Index(body, before) + len(before), Form: form}
	if form {
		s.contentType = "application/x-www-form-urlencoded"
	}
	return s
}

func TestBodyHole(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	x := newExecutor(t, Options{})
	for _, c := range []struct {
		s    step
		fill string
		want string
	}{
		{holed(at(srv, ca), jsonBody, `"key":"`, false), token + `\"`, `{"key":"` + token + `\"","text":"ä"}`},
		{holed(at(srv, ca), formBody, "token=", true), token + "%26+~", "to=%2B49&token=" + token + "%26+~&text=x"},
		{holed(at(srv, ca), "token=", "token=", true), strings.Repeat("a%20", 16<<10), "token=" + strings.Repeat("a%20", 16<<10)},
		{holed(at(srv, ca), "token=", "token=", true), strings.Repeat("a%20", 4<<10), "token=" + strings.Repeat("a%20", 4<<10)},
	} {
		f := &filler{text: c.fill}
		ex := sendTo(t, x, c.s, f)
		wantCode(t, ex, "")
		got := srv.Requests()[len(srv.Requests())-1]
		if string(got.Body) != c.want || got.Header().Get("Content-Length") != fmt.Sprint(len(c.want)) || got.Header().Get("Authorization") != "" {
			t.Errorf("%s\nwant body %s", got.Raw, c.want)
		}
		planted := testkit.Plant(token)
		wiped(t, f.out)
		planted.Refuse(t, "the step", []byte(fmt.Sprintf("%+v", c.s)))
		planted.Refuse(t, "the exchange", []byte(fmt.Sprintf("%+v", ex)))
	}
}

func TestBodyHoleOverHTTP2(t *testing.T) {
	to, seen := serve2(t, func(http.ResponseWriter, *http.Request) {})
	x := newExecutor(t, Options{})
	f := &filler{text: token}
	wantCode(t, sendTo(t, x, holed(to, jsonBody, `"key":"`, false), f), "")
	if got := seen.all(); len(got) != 1 || !strings.Contains(got[0], `auth=[]`) || !strings.Contains(got[0], `body="{\"key\":\"`+token+`\",`) {
		t.Errorf("sent %q", got)
	}
	wiped(t, f.out)
	ex := sendTo(t, x, holed(to, jsonBody, `"key":"`, false), &filler{text: `","a":"`})
	wantCode(t, ex, fault.Internal)
	if ex.Wrote || len(seen.all()) != 1 {
		t.Error("a request was sent")
	}
}

// What is not exactly one credential in its place is never sent.
func TestBodyHoleRefuses(t *testing.T) {
	ca := testkit.CA(t)
	srv := testkit.HTTPS(t, ca, testkit.Always(upstream.JSON(200, `{}`)))
	x := newExecutor(t, Options{})
	in, form := holed(at(srv, ca), jsonBody, `"key":"`, false), holed(at(srv, ca), formBody, "token=", true)
	header := func(o Outgoing) error { return o.SetHeader("Authorization", "Bearer "+token) }
	again := func(o Outgoing) error { return o.FillBody(appends(token)) }
	for _, c := range []struct {
		name string
		s    step
		cred Credential
		want fault.Code
	}{
		{"out of the string", in, &filler{text: `","admin":"`}, fault.Internal},
		{"a bare quote", in, &filler{text: token + `"`}, fault.Internal},
		{"an open escape", in, &filler{text: token + `\`}, fault.Internal},
		{"a line end", in, &filler{text: token + "\n"}, fault.Internal},
		{"nothing", in, &filler{}, fault.Internal},
		{"nothing, quietly", in, &filler{quiet: true}, fault.Internal},
		{"another member", form, &filler{text: token + "&admin=1"}, fault.Internal},
		{"a bare space", form, &filler{text: token + " "}, fault.Internal},
		{"twice", in, &filler{text: token, then: again}, fault.Internal},
		{"and a header", in, &filler{text: token, then: header}, fault.Internal},
		{"and a header, quietly", in, &filler{text: token, then: header, quiet: true}, fault.Internal},
		{"a header alone", in, &bearer{}, fault.Internal},
		{"not at all", in, attachFunc(func(Outgoing) {}), fault.Internal},
		{"without a credential", in, nil, fault.Internal},
		{"no hole", change(at(srv, ca)), &filler{text: token}, fault.Internal},
		{"no hole, quietly", change(at(srv, ca)), &filler{text: token, quiet: true}, fault.Internal},
		{"bound elsewhere", in, &bearer{err: errors.New("bound elsewhere")}, fault.TargetNotAllowed},
	} {
		t.Run(c.name, func(t *testing.T) {
			ex := sendTo(t, x, c.s, c.cred)
			wantCode(t, ex, c.want)
			if ex.Wrote || ex.Writes != 0 || ex.Phase != PhaseAttach || len(srv.Requests()) != 0 {
				t.Errorf("wrote %v, phase %s, %d requests", ex.Wrote, ex.Phase, len(srv.Requests()))
			}
		})
	}
}

// A hole that is not an empty value opens no connection.
func TestBodyHoleMisplaced(t *testing.T) {
	x := newExecutor(t, Options{})
	for _, c := range []struct {
		body string
		hole Hole
	}{
		{jsonBody, Hole{Offset: 0}}, {jsonBody, Hole{Offset: 7}}, {jsonBody, Hole{Offset: 9}}, {jsonBody, Hole{Offset: -1}},
		{jsonBody, Hole{Offset: len(jsonBody) + 1}}, {jsonBody, Hole{Offset: 8, Form: true}}, {`{"key":"x"}`, Hole{Offset: 8}},
		{formBody, Hole{Offset: 3, Form: true}}, {formBody, Hole{Offset: 15}}, {"", Hole{Offset: 0}},
	} {
		s := change(place{scheme: schemeHTTPS, host: "localhost", port: testkit.DeadPort(t), allowLoopback: true})
		s.body, s.hole = []byte(c.body), &c.hole
		if ex := sendTo(t, x, s, &filler{text: token}); ex.Phase != PhasePrepare || fault.CodeOf(errOf(ex)) != fault.Internal {
			t.Errorf("%q at %+v: phase %s, %v", c.body, c.hole, ex.Phase, ex.Err)
		}
	}
}
