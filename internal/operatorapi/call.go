package operatorapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"chatelaine/internal/approvals"
	"chatelaine/internal/loopback"
)

// call is one decoded request of an operator.
type call struct {
	r    *http.Request
	by   string
	body object // empty where there is none
	conn *connection
}

// ReadSessionLife is how long a read session of one connection lasts.
const ReadSessionLife = 10 * time.Minute

// connection is what one connection may do: a read session belongs to it and
// ends with it.
type connection struct {
	mu    sync.Mutex
	until time.Time // guarded by mu; zero: no read session
	held  []byte    // guarded by mu; the parts of a backup that came so far
}

type connectionKey struct{}

// ConnContext gives every connection its own state (loopback.Server.ConnContext).
func ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

func (c *connection) open(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = now.Add(ReadSessionLife)
	return c.until
}

func (c *connection) mayRead(now time.Time) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.until)
}

// mayRead says whether the connection has a read session, and the vault has not
// been locked since it was opened: a lock ends what a proof had opened.
func (a *API) mayRead(c *call) bool {
	if !c.conn.mayRead(time.Now()) {
		return false
	}
	s := a.vault.State()
	return s.State == vaultOpen && c.conn.openedAfter(s.Since)
}

// vaultOpen is the vault's word for being open.
const vaultOpen = "open"

func (c *connection) openedAfter(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until.Add(-ReadSessionLife).After(t)
}

// handle is the one wrapper of every route: caller, body, permission, answer.
func (a *API) handle(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := a.serve(rt, w, r)
		if err != nil {
			e := translate(err)
			if e.status >= http.StatusInternalServerError {
				a.logger.Error("operator request failed", "path", rt.path, "cause", err.Error())
			}
			writeError(w, e)
			return
		}
		b, err := json.Marshal(v)
		if err != nil {
			writeError(w, translate(err))
			return
		}
		loopback.WriteJSON(w, http.StatusOK, b)
	}
}

func (a *API) serve(rt route, w http.ResponseWriter, r *http.Request) (any, error) {
	p, ok := loopback.PeerOf(r.Context())
	if !ok {
		return nil, &apiError{status: http.StatusForbidden, Code: "FORBIDDEN", Message: "The caller is not known."}
	}
	c := &call{r: r, by: fmt.Sprintf("uid %d", p.UID)}
	c.conn, _ = r.Context().Value(connectionKey{}).(*connection)
	if r.Method != http.MethodGet {
		var err error
		if c.body, err = a.readObject(w, r); err != nil {
			return nil, err
		}
	}
	switch rt.needs {
	case needsSocket, ownProof:
	case needsReads:
		if !a.mayRead(c) {
			return nil, needsReadSession()
		}
	default:
		return a.widen(rt.widens, c)
	}
	return rt.serve(a, c)
}

// readObject reads a closed JSON object; an empty body is an empty object.
func (a *API) readObject(w http.ResponseWriter, r *http.Request) (object, error) {
	b, err := loopback.ReadBody(w, r)
	if err != nil || len(b) == 0 {
		return object{}, err
	}
	v, err := a.g.ParseCaller(b)
	if err != nil {
		return object{}, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return object{}, invalid("", "the body must be a JSON object")
	}
	return object{members: m}, nil
}

// object is a JSON object of a caller. at is where it stands in the body: "" for
// the body itself.
type object struct {
	at      string
	members map[string]any
}

// only refuses members that are not named.
func (o object) only(names ...string) error {
	for k := range o.members {
		if !slices.Contains(names, k) {
			return invalid(o.at, fmt.Sprintf("has a member that is not one of %q", names))
		}
	}
	return nil
}

// without is the object without the named members.
func (o object) without(names ...string) object {
	m := maps.Clone(o.members)
	for _, n := range names {
		delete(m, n)
	}
	return object{o.at, m}
}

func (o object) text(name string, needed bool) (string, error) {
	v, there := o.members[name]
	if !there && !needed {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", invalid(o.at+"/"+name, "is missing or not a text")
	}
	return s, nil
}

func (o object) flag(name string, needed bool) (bool, error) {
	v, there := o.members[name]
	if !there && !needed {
		return false, nil
	}
	b, ok := v.(bool)
	if !ok {
		return false, invalid(o.at+"/"+name, "is missing or not true or false")
	}
	return b, nil
}

// only refuses members that a route does not know; "proof" is known to all.
func (c *call) only(names ...string) error { return c.body.only(append(names, memberProof)...) }

func (c *call) text(name string, needed bool) (string, error) { return c.body.text(name, needed) }

// The members of a body that no challenge covers: the proof answers it, and a
// secret has no business in two requests.
const (
	memberProof  = "proof"
	memberSecret = "secret"
)

// proof reads {"challenge_id", "kind", "mac"}. One that says nothing is none.
func (c *call) proof() (approvals.Proof, error) {
	v, there := c.body.members[memberProof]
	m, isObject := v.(map[string]any)
	if !there || isObject && saysNothing(m) {
		return approvals.Proof{}, proofRequired()
	}
	id, ok1 := m["challenge_id"].(string)
	kind, ok2 := m["kind"].(string)
	text, ok3 := m["mac"].(string)
	if !ok1 || !ok2 || !ok3 || len(m) != 3 {
		return approvals.Proof{}, invalid("/proof", "must hold exactly challenge_id, kind and mac")
	}
	mac, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return approvals.Proof{}, invalid("/proof/mac", "is not base64")
	}
	return approvals.Proof{ChallengeID: id, Kind: kind, MAC: mac}, nil
}

// saysNothing is true of {} and of members that are all empty.
func saysNothing(m map[string]any) bool {
	for _, v := range m {
		if v != nil && v != "" {
			return false
		}
	}
	return true
}
