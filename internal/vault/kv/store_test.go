package kv

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"chatelaine/internal/vault"
)

func TestStoreReplacesOneField(t *testing.T) {
	srv := server(t)
	srv.RequireCAS(where)
	s := open(t, options(srv))
	if err := s.Store(t.Context(), where+"#token", sec(planted), sec("the next refresh token")); err != nil {
		t.Fatal(err)
	}
	wantFetch(t, s, where+"#token", "the next refresh token")
	if srv.Field(where, "user") != "bot" {
		t.Error("another field of the entry was lost")
	}
	// Said once more, as after a lost answer, it is done already.
	if err := s.Store(t.Context(), where+"#token", sec(planted), sec("the next refresh token")); err != nil {
		t.Fatal(err)
	}
	wantFetch(t, s, where+"#token?version=1", planted)
}

func TestStoreRefuses(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	err := s.Store(t.Context(), where+"#token", sec("what another daemon has replaced"), sec("mine"))
	wantFail(t, err, vault.ErrSourceChanged, "another value")
	err = s.Store(t.Context(), where+"#token?version=1", sec(planted), sec("mine"))
	wantFail(t, err, vault.ErrBadReference, "never written")
	err = s.Store(t.Context(), where+"#none", sec(planted), sec("mine"))
	wantFail(t, err, vault.ErrSourceAbsent, "no field")
	err = s.Store(t.Context(), where+"#token", sec(planted), sec("\xff\xfe"))
	wantFail(t, err, vault.ErrSourceDenied, "JSON takes only text")
	srv.Token("hvs.narrow", 0, false, "secret/data/deploy")
	srv.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/data/") {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	err = s.Store(t.Context(), where+"#token", sec(planted), sec("mine"))
	wantFail(t, err, vault.ErrSourceDenied, "policy")
	if srv.Field(where, "token") != planted {
		t.Error("a refused store changed the entry")
	}
}

// Somebody writes between the read and the write: the check of the server says so.
func TestStoreLosesNothingToAWriteInBetween(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	var once atomic.Bool
	srv.Fault(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/data/") && once.CompareAndSwap(false, true) {
			srv.Write(where, map[string]any{"token": "from the other daemon", "user": "bot"})
		}
		return false
	})
	err := s.Store(t.Context(), where+"#token", sec(planted), sec("mine"))
	wantFail(t, err, vault.ErrSourceChanged, "another value")
	if srv.Field(where, "token") != "from the other daemon" {
		t.Error("the other daemon's value was lost")
	}
}

// A server that refuses every write with 400 is told from one that was changed.
func TestStoreThatIsNotTaken(t *testing.T) {
	srv := server(t)
	s := open(t, options(srv))
	srv.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/data/") {
			w.WriteHeader(http.StatusBadRequest)
			return true
		}
		return false
	})
	err := s.Store(t.Context(), where+"#token", sec(planted), sec("mine"))
	wantFail(t, err, vault.ErrSourceDenied, "does not take the new value")
}

// Of daemons that share an entry exactly one has its value kept, and the others
// are told.
func TestStoreOfManyDaemons(t *testing.T) {
	srv := server(t)
	o := options(srv)
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		s := open(t, o)
		wg.Go(func() {
			err := s.Store(t.Context(), where+"#token", sec(planted), sec("from daemon "+string(rune('a'+i))))
			switch {
			case err == nil:
				won.Add(1)
			case vault.SourceKind(err) == "changed":
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 7 {
		t.Errorf("%d stored and %d were told, want 1 and 7", won.Load(), lost.Load())
	}
}
