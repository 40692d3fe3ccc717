package gateway

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"chatelaine/internal/auditlog"
	"chatelaine/internal/fault"
)

// rejectionDetail is what an operator reads of a refused answer: why, under
// which contract, and which event of the record holds the bytes.
func rejectionDetail(j judged) map[string]any {
	r, digest := j.rejection, j.contract.Digest()
	d := map[string]any{
		"layer": r.Layer, "rule": r.Rule, "schema_path": r.SchemaPath, "instance_path": r.InstancePath,
		"message": r.Message, "row": r.Row, "upstream_status": r.Status, "engines_differ": r.EnginesDiffer,
		"contract_version": j.contract.Version(), "contract_digest": hex.EncodeToString(digest[:]),
		"answer_event": j.event.EventID,
	}
	// An answer that echoed the credential has no digest there, and none here.
	if sum, ok := j.event.Detail["body_sha256"]; ok {
		d["body_sha256"] = sum
	}
	return d
}

// Rejected is a refused answer as the contract's owner may hear of it: names of
// ours and of the contract, no byte of the answer, no input and no place in the
// answer.
type Rejected struct {
	Action, Version, Owner  string
	Layer, Rule, SchemaPath string
	RequestID               string
}

// noteAttempt counts one send: how long it took, and whether its answer was
// refused. Attempts that are repeated count too: the record holds them as well.
func (g *Gateway) noteAttempt(j judged) {
	took := j.exchange.Ended.Sub(j.exchange.Started)
	g.metrics.seconds.WithLabelValues(j.contract.Action(), j.step.Kind().String()).Observe(took.Seconds())
	g.noteUse(j)
	g.noteRejected(j)
}

// noteRejected counts a refused answer and hands it to whoever listens.
func (g *Gateway) noteRejected(j judged) {
	if j.rejection == nil {
		return
	}
	g.metrics.reject(j.contract.Action(), j.rejection)
	if g.rejected == nil {
		return
	}
	g.rejected(Rejected{
		Action: j.contract.Action(), Version: j.contract.Version(), Owner: j.contract.Owner(),
		Layer: j.rejection.Layer, Rule: j.rejection.Rule, SchemaPath: j.rejection.SchemaPath,
		RequestID: j.call.RequestID(),
	})
}

// RejectionCount is how often one rule refused answers to one action in this
// run. Version and RequestID are those of the newest; Owner is the loaded
// contract's, "" where the action is loaded no longer.
type RejectionCount struct {
	Action    string    `json:"action"`
	Rule      string    `json:"rule"` // layer/rule
	Count     int       `json:"count"`
	Last      time.Time `json:"last"`
	Version   string    `json:"version"`
	Owner     string    `json:"owner"`
	RequestID string    `json:"request_id"`
}

// Rejections are the refused answers of this run, counted by action and rule,
// the most frequent first, so that a vendor that drifts is seen in one look.
func (g *Gateway) Rejections() []RejectionCount {
	out := countRejections(g.log.Recent())
	set := g.Set()
	for i := range out {
		if c, ok := set.Contract(out[i].Action); ok {
			out[i].Owner = c.Owner()
		}
	}
	return out
}

func countRejections(events []auditlog.Event) []RejectionCount {
	at := map[[2]string]int{}
	out := []RejectionCount{}
	for _, e := range events {
		if e.Type != auditlog.TypeOutcome || e.Status != string(fault.InvalidResponse) {
			continue
		}
		key := [2]string{e.Action, e.Rule}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, RejectionCount{Action: e.Action, Rule: e.Rule})
		}
		x := &out[i]
		x.Count++
		x.Last, x.RequestID = e.Wall, e.CallID
		if r, ok := e.Detail["rejection"].(map[string]any); ok {
			x.Version, _ = r["contract_version"].(string)
		}
	}
	slices.SortStableFunc(out, func(a, b RejectionCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Action, b.Action), strings.Compare(a.Rule, b.Rule))
	})
	return out
}
