package operatorapi

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"time"

	"chatelaine/internal/approvals"
)

type cardView struct {
	ID          string     `json:"id"`
	State       string     `json:"state"`
	Sentence    string     `json:"sentence"`
	Lines       []lineView `json:"lines"`
	DaemonLine  string     `json:"daemon_line"`
	RequestedBy string     `json:"requested_by"`
	Action      string     `json:"action"`
	RequestID   string     `json:"request_id"`
	SessionID   string     `json:"session_id"`
	OpenedAt    time.Time  `json:"opened_at"`
	ExpiresAt   time.Time  `json:"expires_at"`
	Exceptions  []string   `json:"exceptions"`
	DecidedBy   string     `json:"decided_by,omitempty"`
	Decision    string     `json:"decision,omitempty"`
}

type lineView struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

func viewCard(c approvals.Card) cardView {
	v := cardView{
		ID: c.ID, State: c.State, Sentence: c.Sentence, DaemonLine: c.DaemonLine, RequestedBy: c.RequestedBy,
		Action: c.Action, RequestID: c.CallID, SessionID: c.SessionID, OpenedAt: c.Opened.UTC(), ExpiresAt: c.Expires.UTC(),
		Lines: []lineView{}, Exceptions: c.Exceptions, DecidedBy: c.DecidedBy, Decision: c.Decision,
	}
	if v.Exceptions == nil {
		v.Exceptions = []string{}
	}
	for _, l := range c.Lines {
		v.Lines = append(v.Lines, lineView(l))
	}
	return v
}

func (a *API) cards(*call) (any, error) {
	out := []cardView{}
	for _, c := range a.desk.Cards() {
		out = append(out, viewCard(c))
	}
	return map[string]any{"approvals": out}, nil
}

func (a *API) card(c *call) (any, error) {
	card, ok := a.desk.Card(idParam(c))
	if !ok {
		return nil, approvals.ErrNotFound
	}
	return viewCard(card), nil
}

// challengeView is a challenge. Covers says in one sentence what a proof over it
// allows; Digest is the same for a program that compares two of them.
type challengeView struct {
	ChallengeID string      `json:"challenge_id"`
	Challenge   string      `json:"challenge"`
	Covers      string      `json:"covers"`
	Digest      string      `json:"digest"`
	ExpiresAt   time.Time   `json:"expires_at"`
	Proofs      []proofView `json:"proofs"`
}

type proofView struct {
	Kind string  `json:"kind"`
	KDF  kdfView `json:"kdf"`
}

type kdfView struct {
	Name      string `json:"name"`
	Salt      string `json:"salt"`
	Time      uint32 `json:"time"`
	MemoryKiB uint32 `json:"memory_kib"`
	Threads   uint8  `json:"threads"`
}

// proofPassphrase is the one kind of proof in this release.
const proofPassphrase = "passphrase"

// challenge issues one for a widening operation other than a card, over what it
// would do now.
func (a *API) challenge(c *call) (any, error) {
	if err := c.body.only("operation", "subject", memberOf); err != nil {
		return nil, err
	}
	name, err := c.text("operation", true)
	if err != nil {
		return nil, err
	}
	w := wideningOf(name)
	if w == nil {
		return nil, invalid("/operation", "is not an operation that takes a proof")
	}
	subject, err := c.text("subject", w.subject != nil)
	if err != nil {
		return nil, err
	}
	if w.subject == nil && subject != "" {
		return nil, invalid("/subject", "this operation has no subject")
	}
	of, err := c.of()
	if err != nil {
		return nil, err
	}
	params, err := a.vault.ProofParams() // a locked daemon decides nothing, so it plans nothing
	if err != nil {
		return nil, err
	}
	s, err := w.plan(a, subject, of)
	if err != nil {
		return nil, err
	}
	return a.issue(s.operation(w.operation, subject), s.covers, params)
}

// memberOf holds the parameters of the operation that a challenge is asked for.
const memberOf = "of"

func (c *call) of() (object, error) {
	v, there := c.body.members[memberOf]
	m, ok := v.(map[string]any)
	if there && !ok {
		return object{}, invalid("/"+memberOf, "must be a JSON object")
	}
	return object{"/" + memberOf, m}, nil
}

// wideningOf is the operation of that name in the table; nil: there is none.
func wideningOf(operation string) *widening {
	for _, rt := range routes() {
		if rt.widens != nil && rt.widens.operation == operation {
			return rt.widens
		}
	}
	return nil
}

// cardChallenge issues one over exactly what the card shows.
func (a *API) cardChallenge(c *call) (any, error) {
	card, ok := a.desk.Card(idParam(c))
	if !ok {
		return nil, approvals.ErrNotFound
	}
	params, err := a.vault.ProofParams()
	if err != nil {
		return nil, err
	}
	op := approvals.Operation{Kind: opApprove, Subject: card.ID, Digest: card.PlanDigest}
	return a.issue(op, "send once: "+card.Sentence+" ("+card.DaemonLine+")", params)
}

func (a *API) issue(op approvals.Operation, covers string, params ProofParams) (any, error) {
	ch, err := a.desk.Challenge(op)
	if err != nil {
		return nil, err
	}
	b64 := base64.StdEncoding.EncodeToString
	return challengeView{
		ChallengeID: ch.ID, Challenge: b64(ch.Bytes[:]), Covers: covers, Digest: hex.EncodeToString(op.Digest[:]), ExpiresAt: ch.Expires.UTC(),
		Proofs: []proofView{{Kind: proofPassphrase, KDF: kdfView{
			Name: "argon2id", Salt: b64(params.Salt), Time: params.Time, MemoryKiB: params.MemoryKiB, Threads: params.Threads,
		}}},
	}, nil
}

// approve carries its proof to the desk, which checks it over the card itself.
// The decision is durable before anything is sent: the intent names it.
func (a *API) approve(c *call) (any, error) {
	if err := c.only(); err != nil {
		return nil, err
	}
	p, err := c.proof()
	if err != nil {
		return nil, err
	}
	id := idParam(c)
	if err := a.desk.Approve(id, p, c.by); err != nil {
		a.g.Note("approve refused", id, c.by)
		return nil, err
	}
	a.g.Note("approve", id, c.by)
	return a.card(c)
}

// deny only narrows: the socket is enough.
func (a *API) deny(c *call) (any, error) {
	if err := c.only(); err != nil {
		return nil, err
	}
	id := idParam(c)
	if err := a.desk.Deny(id, c.by); err != nil {
		return nil, err
	}
	a.g.Note("deny", id, c.by)
	return a.card(c)
}

// events streams what changes (server-sent events, WHATWG HTML 9.2). Notices
// carry ids only; a client fetches the rest.
func (a *API) events(w http.ResponseWriter, r *http.Request) {
	notices, end := a.g.Events()
	defer end()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	beat := time.NewTicker(eventBeat)
	defer beat.Stop()
	for {
		if rc.Flush() != nil {
			return
		}
		select {
		case n := <-notices:
			if _, err := w.Write([]byte("event: " + n.Kind + "\ndata: {\"id\":\"" + n.ID + "\"}\n\n")); err != nil {
				return
			}
		case <-beat.C:
			if _, err := w.Write([]byte(": beat\n\n")); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// eventBeat shows a client that the stream lives.
const eventBeat = 15 * time.Second
