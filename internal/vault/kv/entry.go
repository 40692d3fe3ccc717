package kv

import (
	"context"
	"crypto/x509"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/hashicorp/vault/api"

	"chatelaine/internal/secret"
	"chatelaine/internal/vault"
)

// stored is one version of an entry, with all its fields.
type stored struct {
	fields  map[string]jsontext.Value // copies, since the parser makes them
	version int64
}

func (s stored) wipe() {
	for _, v := range s.fields {
		clear(v)
	}
}

// reply is what this package reads of an answer (KV version 2 and token API). What
// else is in it does not matter.
type reply struct {
	Errors []string `json:"errors"`
	Data   *struct {
		Data     map[string]jsontext.Value `json:"data"`
		Metadata *struct {
			Version      int64  `json:"version"`
			DeletionTime string `json:"deletion_time"`
			Destroyed    bool   `json:"destroyed"`
		} `json:"metadata"`
		Version   int64 `json:"version"`   // of a write
		TTL       int64 `json:"ttl"`       // of a lookup
		Renewable bool  `json:"renewable"` // of a lookup
	} `json:"data"`
	Auth *struct {
		Token     jsontext.Value `json:"client_token"`
		Lease     int64          `json:"lease_duration"`
		Renewable bool           `json:"renewable"`
	} `json:"auth"`
	raw []byte
}

// wipe clears the answer and the copies that the parser made of parts of it.
func (r reply) wipe() {
	clear(r.raw)
	if r.Data != nil {
		stored{fields: r.Data.Data}.wipe()
	}
	if r.Auth != nil {
		clear(r.Auth.Token)
	}
}

// errNotTaken is a write that was refused with 400: the check failed, or the
// request is wrong.
var errNotTaken = errors.New("the write was not taken")

// answer parses what came strictly: no member twice, no bad UTF-8, nothing behind
// the end. The error has no text of it.
func (s *Source) answer(resp *api.Response) (reply, error) {
	var r reply
	b, ok := resp.Body.(*body)
	if !ok { // the library reads the bodies of errors and puts copies in their place
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return reply{}, s.fail(vault.ErrSourceLying, "its answer cannot be read")
		}
		b = &body{b: raw}
	}
	r.raw = b.b
	if err := json.Unmarshal(b.b, &r); err != nil {
		r.wipe()
		return reply{}, s.fail(vault.ErrSourceLying, "its answer is not the JSON that it should be (HTTP %d)", resp.StatusCode)
	}
	return r, nil
}

// read fetches an entry. A token that is refused is replaced once, unless it is
// new.
func (s *Source) read(ctx context.Context, e entry) (stored, error) {
	token, fresh, err := s.session(ctx)
	if err != nil {
		return stored{}, err
	}
	got, err := s.readWith(ctx, token, e)
	if !errors.Is(err, vault.ErrSourceDenied) || fresh {
		return got, err
	}
	s.login.forget(token)
	if token, _, err = s.session(ctx); err != nil {
		return stored{}, err
	}
	return s.readWith(ctx, token, e)
}

func (s *Source) readWith(ctx context.Context, token secret.Secret, e entry) (stored, error) {
	var query map[string][]string
	if e.version != 0 {
		query = map[string][]string{"version": {strconv.FormatInt(e.version, 10)}}
	}
	resp, err := s.client.Logical().ReadRawWithDataWithContext(withToken(ctx, token), e.mount+"/data/"+e.path, query)
	if err != nil {
		return stored{}, s.refusal(ctx, resp, err)
	}
	r, err := s.answer(resp)
	if err != nil {
		return stored{}, err
	}
	switch {
	case r.Data == nil || r.Data.Metadata == nil || r.Data.Metadata.Version < 1:
		err = s.fail(vault.ErrSourceLying, "its answer has no version; is %s a key/value engine of version 2?", e.mount)
	case e.version != 0 && r.Data.Metadata.Version != e.version:
		err = s.fail(vault.ErrSourceLying, "it answered with another version than the one asked for")
	case r.Data.Data == nil:
		err = s.gone(r)
	}
	if err != nil {
		r.wipe()
		return stored{}, err
	}
	clear(r.raw)
	return stored{r.Data.Data, r.Data.Metadata.Version}, nil
}

// gone says why there is nothing.
func (s *Source) gone(r reply) error {
	if r.Data != nil && r.Data.Metadata != nil {
		switch {
		case r.Data.Metadata.Destroyed:
			return s.fail(vault.ErrSourceAbsent, "that version was destroyed")
		case r.Data.Metadata.DeletionTime != "":
			return s.fail(vault.ErrSourceAbsent, "that version was deleted")
		}
	}
	return s.fail(vault.ErrSourceAbsent, "nothing is at that path, or the mount does not exist")
}

// pick takes the field of an entry.
func (s *Source) pick(got stored, e entry) (secret.Secret, error) {
	v, ok := got.fields[e.field]
	switch {
	case !ok:
		return secret.Secret{}, s.fail(vault.ErrSourceAbsent, "the entry has no field of that name")
	case v.Kind() != '"':
		return secret.Secret{}, s.fail(vault.ErrSourceLying, "the field is not text")
	}
	text, err := jsontext.AppendUnquote(make([]byte, 0, len(v)), v)
	defer clear(text[:cap(text)])
	switch {
	case err != nil:
		return secret.Secret{}, s.fail(vault.ErrSourceLying, "the field is not text")
	case len(text) == 0:
		return secret.Secret{}, s.fail(vault.ErrSourceLying, "the field is empty")
	}
	return secret.New(text), nil
}

// quotedRoom is what n bytes take at most as a JSON string, so that no part of a
// secret is left behind in memory that was outgrown.
func quotedRoom(n int) int { return len(`""`) + len(`\u0000`)*n }

// write puts value into the entry that was read, if it is still that version.
func (s *Source) write(ctx context.Context, e entry, got stored, value secret.Secret) error {
	token, _, err := s.session(ctx)
	if err != nil {
		return err
	}
	var out []byte
	defer func() { clear(out) }()
	fields := make(map[string]jsontext.Value, len(got.fields))
	for name, v := range got.fields {
		fields[name] = v
	}
	value.Use(func(b []byte) { fields[e.field], err = jsontext.AppendQuote(make([]byte, 0, quotedRoom(len(b))), b) })
	defer clear(fields[e.field])
	if err == nil {
		out, err = json.Marshal(map[string]any{"options": map[string]int64{"cas": got.version}, "data": fields})
	}
	if err != nil {
		return s.fail(vault.ErrSourceDenied, "the value is not text, and JSON takes only text")
	}
	resp, err := s.client.Logical().WriteRawWithContext(withToken(ctx, token), e.mount+"/data/"+e.path, out)
	if err != nil {
		if resp != nil && resp.StatusCode == http.StatusBadRequest {
			return errNotTaken
		}
		return s.refusal(ctx, resp, err)
	}
	r, err := s.answer(resp)
	if err != nil {
		return err
	}
	if r.Data == nil || r.Data.Version != got.version+1 {
		return s.fail(vault.ErrSourceLying, "it says that it wrote another version than the next one")
	}
	return nil
}

// refusal turns what the library says into an error of the closed list. Nothing of
// the library's text is kept: it quotes answers.
func (s *Source) refusal(ctx context.Context, resp *api.Response, err error) error {
	var network net.Error
	var unknown x509.SystemRootsError
	switch {
	case errors.Is(err, errRedirect):
		return s.fail(vault.ErrSourceUnavailable, "it sends elsewhere, as a standby does; name the address of the active server, or of a balancer that finds it")
	case errors.Is(err, errTooLarge):
		return s.fail(vault.ErrSourceLying, "its answer has more than %d bytes", maxAnswer)
	case errors.Is(err, errEncoded), errors.Is(err, errNotJSON):
		return s.fail(vault.ErrSourceLying, "its answer is not JSON; is something else at that address?")
	case errors.Is(err, errElsewhere):
		return s.fail(vault.ErrSourceLying, "a request to another address was refused")
	case isTrust(err), errors.As(err, &unknown):
		return s.fail(vault.ErrSourceLying, "its certificate is not trusted for that host by the CA of this source")
	case resp != nil && resp.Response != nil:
		return s.status(resp)
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return s.fail(vault.ErrSourceUnavailable, "no answer within %s", s.o.Timeout)
	case errors.Is(err, errCut):
		return s.fail(vault.ErrSourceUnavailable, "its answer was cut")
	}
	return s.fail(vault.ErrSourceUnavailable, "it cannot be reached")
}

// Statuses of the servers that net/http has no name for.
const (
	statusRecovering = 472 // a secondary for disaster recovery
	statusStandby    = 473 // a standby for performance
)

// status reads an answer by its HTTP status.
func (s *Source) status(resp *api.Response) error {
	switch code := resp.StatusCode; code {
	case http.StatusNotFound:
		if r, err := s.answer(resp); err == nil { // an entry that was deleted says so here
			defer r.wipe()
			return s.gone(r)
		}
		return s.gone(reply{})
	case http.StatusForbidden, http.StatusUnauthorized:
		return s.fail(vault.ErrSourceDenied, "its policy does not let this login do that, or the login is not valid any more (%d)", code)
	case http.StatusBadRequest:
		return s.fail(vault.ErrSourceDenied, "it does not take the request (400)")
	case http.StatusServiceUnavailable:
		if s.saysSealed(resp) {
			return s.fail(vault.ErrSourceLocked, "the server is sealed; unseal it")
		}
		return s.fail(vault.ErrSourceUnavailable, "the server, or what stands before it, is not ready (503)")
	case http.StatusTooManyRequests:
		return s.fail(vault.ErrSourceUnavailable, "it was asked too often (429)")
	case http.StatusPreconditionFailed, statusRecovering, statusStandby:
		return s.fail(vault.ErrSourceUnavailable, "that server does not have the data yet, or is a standby (%d)", code)
	default:
		if code >= http.StatusInternalServerError {
			return s.fail(vault.ErrSourceUnavailable, "the server failed (%d)", code)
		}
		return s.fail(vault.ErrSourceLying, "a status that this API does not have (%d)", code)
	}
}

// saysSealed tells a sealed server from a balancer without servers: both answer
// 503.
func (s *Source) saysSealed(resp *api.Response) bool {
	r, err := s.answer(resp)
	if err != nil {
		return false
	}
	defer r.wipe()
	for _, text := range r.Errors {
		if strings.Contains(strings.ToLower(text), "sealed") {
			return true
		}
	}
	return false
}
