package demo

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"regexp"
	"strings"
	"time"

	"chatelaine/internal/client"
	"chatelaine/internal/demo/release"
)

// lie is one hostile answer and where it must be stopped.
type lie struct {
	name  string
	how   release.Lie
	layer string // the layer of the boundary that refuses it
	from  string // what of the answer is shown begins here
	show  int    // how much of it
}

var lies = []lie{
	{"maintenance banner", release.MaintenanceBanner, "schema", `"state"`, 42},
	{"duplicate member", release.DuplicateMember, "parse", `"state"`, 0},
	{"wrong project", release.WrongProject, "check", `"project_id"`, 27},
	{"stale time", release.StaleTime, "check", `"observed_at"`, 37},
	{"token echoed", release.EchoedToken, "echo", `"message"`, 0},
	{"2 MiB body", release.HugeBody, "transport", `"message"`, 0},
	{"depth 1,000", release.DeepBody, "parse", `"message"`, 0},
}

// proofPatience is how long a proof may be too soon: the daemon takes one a
// second.
const proofPatience = 10 * time.Second

// readSession opens the operator's view of inputs and refused answers.
func (p *play) readSession(ctx context.Context) error {
	return until(ctx, proofPatience, "a proof to be taken", func() (bool, error) {
		ch, err := p.op.Challenge(ctx, client.OpRead, "", nil)
		if err != nil {
			return false, err
		}
		proof, err := ch.Prove([]byte(operatorPassphrase))
		if err != nil {
			return false, err
		}
		err = p.op.OpenRead(ctx, proof)
		if client.CodeOf(err) == client.ProofTooSoon {
			return false, nil
		}
		return err == nil, err
	})
}

// lies has the release service lie in seven ways. Each time another version is
// deployed: a change whose answer was refused is unresolved, and the same input
// would join it instead of being sent.
func (p *play) lies(ctx context.Context) error {
	if err := p.readSession(ctx); err != nil {
		return err
	}
	defer p.service.Switch(release.Honest)
	told := map[string]bool{}
	for i, l := range lies {
		p.service.Switch(l.how)
		id := fmt.Sprintf("hostile-%04d", i+1)
		e, err := p.call(ctx, "deploy_release", id, deploy("test", hostileVersion(i)))
		if err != nil {
			return err
		}
		if err := p.refused(ctx, l, hostileVersion(i), e); err != nil {
			return err
		}
		told[strings.ReplaceAll(string(e.Raw), id, "hostile-…")] = true
	}
	// Seven lies and one text: nothing in it comes from an answer.
	p.claim(claim{"what the agent is told", fmt.Sprintf("%d lies, %s, but for the request id in it", len(lies), count(len(told), "text")), len(told) == 1, "1 text"})
	for text := range told {
		p.bytes("answered", from(text, `"error":`))
	}
	return nil
}

func hostileVersion(i int) string { return fmt.Sprintf("3.0.%d", i+1) }

// refused claims one line: what was answered, what the agent got, why.
func (p *play) refused(ctx context.Context, l lie, version string, e client.Envelope) error {
	d, err := p.op.Call(ctx, e.RequestID)
	if err != nil {
		return fmt.Errorf("the operator's view of %s: %w", e.RequestID, err)
	}
	var more struct {
		Detail struct {
			Rejection rejection `json:"rejection"`
		} `json:"detail"`
	}
	if err := json.Unmarshal(d.More, &more); err != nil {
		return fmt.Errorf("the operator's view of %s: %w", e.RequestID, err)
	}
	r := more.Detail.Rejection
	fmt.Fprintf(&p.p.printed, "%s\n", d.More)
	sent := p.arrived(version)
	p.claim(claim{l.name, code(e) + "  " + r.text(),
		code(e) == "INVALID_RESPONSE" && r.Layer == l.layer && sent == 1,
		fmt.Sprintf("INVALID_RESPONSE, refused by layer %s, sent once; it was sent %d times", l.layer, sent)})
	p.bytes("said", p.said(l, version))
	return nil
}

// rejection is what the operator reads of a refused answer.
type rejection struct {
	Layer   string `json:"layer"`
	Rule    string `json:"rule"`
	At      string `json:"instance_path"`
	Message string `json:"message"`
}

// pathShown is how much of a long path is shown.
const pathShown = 20

// position is told by the parser besides the path; here the bytes stand below.
var position = regexp.MustCompile(`^line \d+, column \d+: `)

// text is the rejection in one line.
func (r rejection) text() string {
	head := r.Layer + "/" + r.Rule
	if r.At != "" {
		head += " " + clip(r.At, pathShown)
	}
	return head + ": " + strings.TrimPrefix(position.ReplaceAllString(r.Message, ""), r.Rule+" ")
}

// said is the part of the answer that is the lie, the token made unreadable.
func (p *play) said(l lie, version string) string {
	for _, r := range p.service.Received() {
		if r.Version != version {
			continue
		}
		text := string(r.Answer)
		_, rest, _ := strings.Cut(text, l.from)
		text = l.from + rest
		for _, token := range p.tokens {
			text = strings.ReplaceAll(text, token, "<the token>")
		}
		if l.show > 0 && len(text) > l.show {
			text = text[:l.show]
		}
		if len(text) > bytesWidth {
			size := "  " + count(len(r.Answer), "byte")
			text = clip(text, bytesWidth-len(size)) + size
		}
		return text
	}
	return ""
}
