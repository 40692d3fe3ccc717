package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

// The reference model: what an agent and an operator are promised, written with
// plain maps and no cryptography. It knows nothing of the ledger's table.

type mkey struct {
	o  Owner
	id string
}

// mdisk is what survives a crash.
type mdisk struct {
	id     mkey
	input  [32]byte
	change bool
	phase  string // armed, polling, unresolved, finished, rearmed
	polled bool   // its poll had begun before it finished
	doubt  bool   // as it was when it was written
	idem   string
	ended  time.Time
	seq    uint64 // finished: where its outcome stands in the record, 0 in none
}

type mcall struct {
	mdisk
	real    *Call
	phase   string // claimed, looking, waiting, armed, sent, proving, polling, reconciling
	stale   bool   // claimed before a lock
	doubted bool
	onDisk  bool
	prior   *mdisk
	aliases []mkey
}

type model struct {
	live   []*mcall
	disk   map[mkey]*mdisk
	alias  map[mkey]mkey // durable
	locked bool
	seq    uint64 // the newest number that the record gave
	kept   uint64 // through which it is durable
}

func (m *model) liveBy(k mkey) *mcall {
	for _, c := range m.live {
		if c.id == k || slices.Contains(c.aliases, k) {
			return c
		}
	}
	return nil
}

func (m *model) stored(k mkey) *mdisk {
	for {
		to, ok := m.alias[k]
		if !ok {
			return m.disk[k]
		}
		k = to
	}
}

// claim returns what must come of a claim: the code of a refusal, or verdict and
// the id that answers.
func (m *model) claim(k mkey, input [32]byte, change bool, now time.Time) (fault.Code, Verdict, mkey, *mdisk) {
	if m.locked {
		return fault.VaultLocked, 0, k, nil
	}
	if c := m.liveBy(k); c != nil {
		if c.input != input || c.change != change {
			return fault.DuplicateRequest, 0, k, nil
		}
		return "", Joined, c.id, nil
	}
	var prior *mdisk
	if d := m.stored(k); d != nil {
		tomb := !d.open() && now.Sub(d.ended) > 30*24*time.Hour
		switch {
		case tomb, d.input != input, d.change != change:
			return fault.DuplicateRequest, 0, k, nil
		case m.liveBy(d.id) != nil:
			return "", Joined, m.liveBy(d.id).id, nil
		case d.phase == "finished":
			return "", Recorded, d.id, nil
		case d.phase != "rearmed":
			return "", Unresolved, d.id, nil
		}
		prior, k = d, d.id
	}
	if change {
		for _, c := range m.live {
			if c.change && c.id.o == k.o && c.input == input {
				return "", Joined, c.id, nil
			}
		}
		for _, d := range m.disk {
			if d.change && d.id.o == k.o && d.input == input && d.open() {
				return "", Unresolved, d.id, nil
			}
		}
	}
	return "", Fresh, k, prior
}

// open says whether it may have happened, or still goes on.
func (d *mdisk) open() bool { return d.phase != "finished" && d.phase != "rearmed" }

func (m *model) drop(c *mcall) {
	m.live = slices.DeleteFunc(m.live, func(x *mcall) bool { return x == c })
}

// persist writes c, with the ids that joined it.
func (m *model) persist(c *mcall, phase string, now time.Time) {
	d := c.mdisk
	d.phase, d.ended, d.doubt = phase, now, c.doubted
	delete(m.alias, c.id)
	m.disk[c.id] = &d
	for _, a := range c.aliases {
		delete(m.disk, a)
		m.alias[a] = c.id
	}
	c.onDisk = true
}

func (m *model) release(c *mcall) {
	if c.onDisk {
		for _, a := range c.aliases {
			delete(m.alias, a)
		}
		delete(m.disk, c.id)
		if c.prior != nil {
			m.disk[c.id] = c.prior
		}
	}
	m.drop(c)
}

// crash loses the process, and of the record what came after floor. Its next
// run gives the lost numbers again.
func (m *model) crash(floor uint64) {
	for _, d := range m.disk {
		if d.phase == "finished" && d.seq > floor {
			d.phase = "armed"
			if d.polled {
				d.phase = "polling"
			}
		}
	}
	m.seq, m.kept = floor, floor
	for _, c := range slices.Clone(m.live) {
		m.drop(c)
	}
	m.locked = false
}

// left are the calls that an earlier run left behind.
func (m *model) left() (out []*mdisk) {
	for _, d := range m.disk {
		if (d.phase == "armed" || d.phase == "polling") && m.liveBy(d.id) == nil {
			out = append(out, d)
		}
	}
	return out
}

func (c *mcall) unsent() bool {
	return c.phase == "claimed" || c.phase == "looking" || c.phase == "waiting"
}

type walk struct {
	t   *testing.T
	b   *bench
	m   *model
	r   *rand.Rand
	log []string
}

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	for _, l := range w.log[max(0, len(w.log)-40):] {
		w.t.Log(l)
	}
	w.t.Fatalf(format, args...)
}

// actionOf keeps changes and reads apart, as a contract does.
func actionOf(change bool) string {
	if change {
		return "deploy_release"
	}
	return "get_release"
}

func (w *walk) claim() {
	k := mkey{[]Owner{ann, bob}[w.r.IntN(2)], fmt.Sprintf("request-%d", w.r.IntN(6))}
	input, change := [32]byte{byte(w.r.IntN(2))}, w.r.IntN(4) > 0
	code, want, id, prior := w.m.claim(k, input, change, w.b.now)
	w.note("claim %s %s input %d change %v: expect %q %d %s", k.o.Agent, k.id, input[0], change, code, want, id.id)
	c, v, err := w.b.l.Claim(k.o, k.id, actionOf(change), input, change)
	if code != "" {
		if fault.CodeOf(err) != code {
			w.fail("got %d, %v; want %s", v, err, code)
		}
		return
	}
	if err != nil || v != want || c.RequestID() != id.id {
		w.fail("got %d of %s, %v; want %d of %s", v, c.RequestID(), err, want, id.id)
	}
	switch v {
	case Fresh:
		x := &mcall{real: c, phase: "claimed", prior: prior, mdisk: mdisk{id: id, input: input, change: change, idem: c.IdempotencyKey()}}
		if prior != nil && prior.idem != x.idem {
			w.fail("a re-armed call has another idempotency key")
		}
		w.m.live = append(w.m.live, x)
	case Joined:
		if d := w.m.stored(k); d != nil && w.m.liveBy(k) == nil && d.phase == "rearmed" {
			k = d.id // a name of a re-armed call asks for that call
		}
		x := w.m.liveBy(id)
		if x.real != c || isDone(c) {
			w.fail("joined another call")
		}
		if k != id && x.change && !slices.Contains(x.aliases, k) && w.m.alias[k] != id {
			x.aliases = append(x.aliases, k)
			if x.onDisk {
				delete(w.m.disk, k)
				w.m.alias[k] = id
			}
		}
	case Unresolved:
		if d := w.m.stored(k); d != nil && d.phase == "rearmed" {
			k = d.id
		}
		if k != id {
			delete(w.m.disk, k)
			w.m.alias[k] = id
		}
		fallthrough
	case Recorded:
		if c.IdempotencyKey() != w.m.disk[id].idem || !isDone(c) {
			w.fail("the recorded call is another one")
		}
		if out, _ := c.Outcome(); v == Unresolved && strings.Contains(string(out.Envelope)+string(out.Detail), "true") {
			w.fail("unresolved, and it answers with data")
		}
	}
}

// step does something to a live call and checks that it was allowed exactly
// when the model says so.
func (w *walk) step() {
	if len(w.m.live) == 0 {
		return
	}
	c := w.m.live[w.r.IntN(len(w.m.live))]
	op := []string{"look", "wait", "arm", "arm", "send", "prove", "success", "failure", "unknown", "rearm", "release", "cancel", "doubt", "prepare", "poll", "poll", "reconcile", "told"}[w.r.IntN(18)]
	w.note("%s %s %s, %s", op, c.id.o.Agent, c.id.id, c.phase)
	attempted := c.phase == "armed" || c.phase == "sent" || c.phase == "proving"
	armed := attempted || c.phase == "polling" || c.phase == "reconciling"
	var err error
	allowed := false
	move := func(state State, phase string, from ...string) {
		err, allowed = c.real.SetState(state), slices.Contains(from, c.phase)
		if allowed {
			c.phase = phase
		}
	}
	switch op {
	case "look":
		move(Looking, "looking", "claimed")
	case "wait":
		move(Waiting, "waiting", "claimed", "looking")
	case "send":
		move(Sent, "sent", "armed")
	case "prove":
		move(Proving, "proving", "sent")
	case "arm":
		err, allowed = c.real.Arm(Armed{Attempt: 1, IdempotencyKey: c.idem}), !w.m.locked && !c.stale && (attempted || c.unsent())
		if allowed {
			c.polled = false
			w.m.persist(c, "armed", w.b.now)
			c.phase = "armed"
		}
	case "poll":
		err, allowed = c.real.Poll(Polled{Captured: []byte("captured"), Deadline: w.b.now.Add(time.Hour)}), attempted
		if allowed {
			c.polled = true
			w.m.persist(c, "polling", w.b.now)
			c.phase = "polling"
		}
	case "reconcile":
		move(Reconciling, "reconciling", "armed", "sent", "proving", "polling")
	case "told":
		err, allowed = c.real.Told(), c.phase == "reconciling"
		if allowed {
			c.doubted = false
		}
	case "success":
		w.m.seq++
		w.m.kept = w.m.seq
		err, allowed = c.real.Finish(recorded(w.m.seq)), true
		w.finished(c, w.m.seq)
	case "prepare":
		w.prepareStep(c)
		return
	case "failure":
		err, allowed = c.real.Finish(failure("OWN_CODE")), !c.doubted
		if allowed {
			w.m.persist(c, "finished", w.b.now)
			w.m.drop(c)
		}
	case "unknown":
		err, allowed = c.real.Finish(unknown()), armed
		if allowed {
			w.m.persist(c, "unresolved", w.b.now)
			w.m.drop(c)
		}
	case "rearm":
		err, allowed = c.real.Rearm(failure(fault.UpstreamUnavailable), 0), (armed || c.phase == "looking") && !c.doubted
		if allowed {
			w.m.persist(c, "rearmed", w.b.now)
			w.m.drop(c)
		}
	case "release":
		w.releaseStep(c)
		return
	case "cancel":
		err, allowed = c.real.Cancel(nil), c.unsent()
		if allowed {
			w.m.persist(c, "finished", w.b.now)
			w.m.drop(c)
		}
	case "doubt":
		if attempted {
			c.real.Doubt()
			c.doubted = c.change
		}
		return
	}
	if (err == nil) != allowed {
		w.fail("%s: %v, allowed %v", op, err, allowed)
	}
}

func (w *walk) finished(c *mcall, seq uint64) {
	w.m.persist(c, "finished", w.b.now)
	w.m.disk[c.id].seq = seq
	w.m.drop(c)
}

// prepareStep writes the outcome down beside the record. Then the record has
// it, or refuses it, or the process is lost before that is known.
func (w *walk) prepareStep(c *mcall) {
	w.m.seq++
	seq := w.m.seq
	if c.phase == "reconciling" {
		if err := w.b.l.Resolve(c.id.id+"@"+c.id.o.Agent+":9", true, nil); !w.m.locked && err == nil {
			w.fail("another user's call was resolved")
		}
	}
	if err := c.real.Prepare(recorded(seq)); err != nil {
		w.fail("prepare: %v", err)
	}
	if isDone(c.real) || c.real.Arm(Armed{Attempt: 2, IdempotencyKey: c.idem}) == nil {
		w.fail("a prepared call was told or armed again")
	}
	switch how := w.r.IntN(4); {
	case how == 0:
		w.note("recorded at %d", seq)
		w.m.kept = seq
		c.real.Publish()
		w.finished(c, seq)
	case how == 1 && !c.unsent():
		w.note("not recorded")
		if err := c.real.Finish(unknown()); err != nil {
			w.fail("unknown in place of the data: %v", err)
		}
		w.m.persist(c, "unresolved", w.b.now)
		w.m.drop(c)
	default:
		w.finished(c, seq)
		w.crash()
	}
}

// crash restarts, now and then more than once, killed before the floor is set
// or before the vault is unlocked.
func (w *walk) crash() {
	floor := w.m.kept
	if w.r.IntN(2) == 0 {
		floor = w.m.seq // the last batch reached the disk after all
	}
	w.note("crash, the record is durable through %d", floor)
	w.m.crash(floor)
	for dies := w.r.IntN(3); dies > 0; dies-- {
		w.b.must(w.b.store.Close())
		w.b.floor, w.b.noFloor = floor, w.r.IntN(2) == 0
		w.b.start()
		if !w.b.noFloor { // that run wrote to the record
			w.m.seq += uint64(w.r.IntN(3))
			w.m.kept, floor = w.m.seq, w.m.seq
		}
	}
	w.b.noFloor = false
	w.b.restart(floor)
	w.recover()
}

// recover takes up what was left behind: some of it goes on, some is given up,
// some is left for a later start.
func (w *walk) recover() {
	left, err := w.b.l.Left()
	w.b.must(err)
	want := w.m.left()
	if len(left) != len(want) {
		w.fail("%d calls were left behind, want %d", len(left), len(want))
	}
	for _, x := range left {
		d := w.m.disk[mkey{x.Owner, x.RequestID}]
		if d == nil || x.IsPolling != (d.phase == "polling") || (x.IsPolling && string(x.Polled.Captured) != "captured") {
			w.fail("left behind: %+v, want %+v", x, d)
		}
		switch w.r.IntN(3) {
		case 0:
			w.note("give up %s", x.RequestID)
			w.b.must(w.b.l.GiveUp(x))
			d.phase = "unresolved"
		case 1:
			w.resume(x, d)
		}
	}
}

func (w *walk) resume(x Left, d *mdisk) {
	w.note("resume %s", x.RequestID)
	c, err := w.b.l.Resume(x)
	w.b.must(err)
	if _, err := w.b.l.Resume(x); err == nil {
		w.fail("resumed twice")
	}
	phase := "reconciling"
	if x.IsPolling {
		phase = "polling"
	}
	y := &mcall{real: c, phase: phase, onDisk: true, doubted: d.doubt, mdisk: *d}
	w.m.live = append(w.m.live, y)
}

// releaseStep frees the id of what was not sent; a change that may have been
// sent becomes unresolved, a read is forgotten where its state allows it.
func (w *walk) releaseStep(c *mcall) {
	if !c.change && !c.unsent() && c.phase != "armed" {
		return // the gateway ends a read that was sent by Finish
	}
	err := c.real.Release(nil, "AUDIT_UNAVAILABLE")
	if c.change && (c.doubted || (!c.unsent() && c.phase != "armed")) {
		if err == nil {
			w.fail("released a change that may have been sent")
		}
		w.m.drop(c)
		return // the disk says armed: unresolved
	}
	if err != nil {
		w.fail("release: %v", err)
	}
	w.m.release(c)
}

func (w *walk) world() {
	switch w.r.IntN(10) {
	case 0:
		w.crash()
	case 1, 2:
		w.note("lock")
		w.b.l.Lock()
		if !w.m.locked {
			for _, c := range w.m.live {
				c.stale = true
			}
		}
		w.m.locked = true
	case 3, 4, 5, 6:
		w.note("unlock")
		w.b.unlock()
		w.m.locked = false
	case 7:
		w.note("time")
		w.b.now = w.b.now.Add(time.Duration(w.r.IntN(20*24)) * time.Hour)
	case 8:
		w.note("sweep")
		w.b.must(w.b.l.Sweep())
	case 9:
		w.resolve()
	}
}

func (w *walk) resolve() {
	if w.m.locked {
		return
	}
	for _, d := range w.m.disk {
		c := w.m.liveBy(d.id)
		if !d.open() || (c != nil && c.id == d.id && c.phase != "reconciling") || (c != nil && c.id != d.id) {
			continue
		}
		happened := w.r.IntN(2) == 0
		w.note("resolve %s %s %v", d.id.o.Agent, d.id.id, happened)
		envelope := []byte(`{"ok":false,"error":{"code":"UPSTREAM_UNAVAILABLE"}}`)
		d.phase, d.ended, d.seq = "rearmed", w.b.now, 0
		if happened {
			envelope, d.phase = []byte(`{"ok":true}`), "finished"
		}
		if err := w.b.l.Resolve(d.id.id+"@"+d.id.o.Agent, happened, envelope); err != nil {
			w.fail("resolve: %v", err)
		}
		if c != nil { // a person's word wins over a reconcile that comes later
			if err := c.real.Finish(success()); err == nil || !isDone(c.real) {
				w.fail("a late reconcile changed what a person said: %v", err)
			}
			w.m.drop(c)
		}
		return
	}
}

// check compares what can be seen at any moment.
func (w *walk) check() {
	running, unresolved := 0, 0
	phase := map[string]State{"claimed": Claimed, "looking": Looking, "waiting": Waiting, "armed": StateArmed, "sent": Sent, "proving": Proving, "polling": Polling, "reconciling": Reconciling}
	for _, c := range w.m.live {
		running++
		if got := c.real.State(); got != phase[c.phase] {
			w.fail("%s is %s, want %s", c.id.id, got, c.phase)
		}
	}
	for _, d := range w.m.disk {
		if d.open() && w.m.liveBy(d.id) == nil {
			unresolved++
		}
	}
	if r, u := w.b.l.Counts(); r != running || u != unresolved {
		w.fail("%d running, %d unresolved; want %d, %d", r, u, running, unresolved)
	}
}

// TestModel walks the machine at random beside the model. A failure prints the
// seed's last steps; the seeds are fixed so that it comes again.
func TestModel(t *testing.T) {
	const walks, steps = 25, 300
	for seed := range uint64(walks) {
		w := &walk{t: t, b: newBench(t), m: &model{disk: map[mkey]*mdisk{}, alias: map[mkey]mkey{}}, r: rand.New(rand.NewPCG(seed, 7))}
		for range steps {
			switch n := w.r.IntN(20); {
			case n < 9:
				w.claim()
			case n < 18:
				w.step()
			default:
				w.world()
			}
			w.check()
		}
	}
}
