package operatorapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// sourceOperations are the widening operations on sources.
func sourceOperations(r *rig) []tried {
	r.vault.sources = []SourceView{
		{Name: "bao", Kind: "kv", Place: "https://bao.example", Credential: "stored", CredentialStored: true},
		{Name: "pass", Kind: "exec", Place: "/usr/bin/pass show {ref}", Credential: "none needed"},
		{Name: "other", Kind: "kv", Place: "https://other.example", Credential: "stored", CredentialStored: true},
	}
	moved := func() { r.vault.sources[0].Place = "https://thief.example" }
	return []tried{
		{operation: opPutSource, subject: "bao", elsewhere: "other", change: moved, says: "the place of the source bao",
			covers: "store what the daemon logs in with at the source bao, bound to https://bao.example"},
		{operation: opDeleteSource, subject: "bao", elsewhere: "other", change: moved, says: "the place of the source bao",
			covers: "delete what the daemon logs in with at the source bao; identities whose secrets lie there work no more"},
	}
}

// sourceTable stands for the sources of a daemon.
type sourceTable struct {
	sources []SourceView
	into    []string // what was stored, with its place
}

func (s *sourceTable) Sources() []SourceView { return s.sources }

func (s *sourceTable) CheckSource(text string) error {
	name, _, _ := strings.Cut(text, ":")
	_, err := s.SourcePlace(name)
	return err
}

func (s *sourceTable) SourcePlace(name string) (string, error) {
	for _, v := range s.sources {
		if v.Name == name {
			return v.Place, nil
		}
	}
	return "", invalid("/source", "there is no such source")
}

func (s *sourceTable) PutSource(_ context.Context, name, place string, b []byte) error {
	s.into = append(s.into, name+" "+place+" "+string(b))
	s.sources[0].Credential = "stored anew"
	return nil
}

func (s *sourceTable) DeleteSource(_ context.Context, name string) error {
	s.sources = s.sources[1:]
	return nil
}

func TestSourceIsRefusedBeforeAProof(t *testing.T) {
	r := newRig(t)
	sourceOperations(r)
	for what, c := range map[string]struct {
		operation, subject string
		of                 params
		status             int
	}{
		"an identity at no source":    {opPut, "deploy-test-bot", params{"source": "nowhere:x"}, http.StatusBadRequest},
		"a rotation to no source":     {opRotate, "deploy-test-bot", params{"source": "nowhere:x", "unproved": true}, http.StatusBadRequest},
		"no such source":              {opPutSource, "nowhere", nil, http.StatusBadRequest},
		"another member":              {opPutSource, "bao", params{"place": "https://thief.example"}, http.StatusBadRequest},
		"a source without credential": {opDeleteSource, "pass", nil, http.StatusNotFound},
	} {
		if _, err := r.challenge(c.operation, c.subject, c.of); err == nil || translate(err).status != c.status {
			t.Errorf("%s: %v", what, err)
		}
	}
	v, err := r.api.sources(r.request("", nil))
	r.must(err)
	if got := len(v.(map[string]any)["sources"].([]SourceView)); got != 3 {
		t.Errorf("%d sources are listed, want 3", got)
	}
}
