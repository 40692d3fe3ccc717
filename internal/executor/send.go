package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"chatelaine/internal/fault"
)

// attempt is one Send under way.
type attempt struct {
	x    *Executor
	s    step
	c    Credential
	lane *lane
	wire *wire
	ex   Exchange
}

// send is Send for a step that is already taken apart.
func (x *Executor) send(ctx context.Context, who owner, s step, c Credential) Exchange {
	if s.timeout <= 0 {
		s.timeout = DefaultStepTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	a := &attempt{x: x, s: s, c: c, ex: Exchange{Started: x.o.Now(), Phase: PhasePrepare}}
	a.run(ctx, who)
	a.ex.Ended = x.o.Now()
	return a.ex
}

// run is the straight line of an attempt. Each step leaves its reason in the
// exchange if it ends the attempt.
func (a *attempt) run(ctx context.Context, who owner) {
	if err := a.s.check(); err != nil {
		a.fail(fault.Internal, err)
		return
	}
	var err error
	if a.lane, err = a.x.laneFor(who, a.s.to); err != nil {
		a.fail(fault.Internal, err)
		return
	}
	if !a.connect(ctx) {
		return
	}
	untouched := a.wire.watch(ctx)
	var reusable bool
	if a.wire.h2 {
		a.roundTrip2(ctx)
	} else {
		reusable = a.roundTrip1(ctx)
	}
	a.release(untouched() && reusable)
}

// connect takes an idle connection, or makes one.
func (a *attempt) connect(ctx context.Context) bool {
	if a.s.reuse {
		a.wire = a.lane.take()
	}
	if a.wire != nil {
		a.ex.Reused = true
	} else {
		a.ex.Phase = PhaseResolve
		w, st := a.x.open(ctx, a.lane, a.s.to.basePath, a.c)
		if st != nil {
			a.stop(st)
			return false
		}
		a.wire = w
	}
	a.ex.Connection = a.wire.facts
	a.ex.Connection.BasePath = a.s.to.basePath
	return true
}

// roundTrip1 speaks HTTP/1.1: attach, write once, read once. It says whether
// the connection may carry another request.
func (a *attempt) roundTrip1(ctx context.Context) bool {
	a.wire.within(ctx, a.s.timeout)
	writeErr, ok := a.write(ctx)
	if !ok {
		return false
	}
	if writeErr != nil && !a.ex.Wrote {
		a.lost(writeErr)
		return false
	}
	// A remote that refuses early closes before it has read the whole
	// request; its answer may already be here, and counts.
	a.ex.Phase = PhaseHeader
	a.wire.within(ctx, a.x.o.HeaderTimeout)
	resp, rest, ans := a.wire.readHeader(a.s.method, a.x.o.MaxHeader)
	if ans.err == nil {
		a.ex.Phase = PhaseBody
		a.wire.within(ctx, a.s.timeout)
		a.wire.readBody(&ans, resp, rest, a.x.o.MaxBody)
	} else if writeErr != nil && !a.unwelcome(ans.err) {
		ans.err = writeErr
	}
	a.settle(ans)
	return ans.reusable && a.s.reuse && writeErr == nil
}

// write attaches the credential and writes the request. ok is false if the
// credential refused; then not one byte was written. Nothing of the credential
// is left in memory of ours afterwards.
func (a *attempt) write(ctx context.Context) (err error, ok bool) {
	a.ex.Phase = PhaseAttach
	o, st := a.s.attach(a.c, facts(a.ex.Connection), a.wire.certified)
	if st != nil {
		a.stop(st)
		return nil, false
	}
	request := a.s.encode(o)
	defer clear(request)
	o.wipe()
	if err := ctx.Err(); err != nil {
		a.lost(err)
		return nil, false
	}
	a.ex.Phase, a.ex.Writes = PhaseWrite, 1
	_, before := a.wire.raw.marks()
	_, err = a.wire.conn.Write(request)
	_, after := a.wire.raw.marks()
	a.ex.Wrote = after > before
	return err, true
}

// facts is a copy that the credential may keep.
func facts(c Connection) Connection {
	c.Pins, c.PeerSPKI = slices.Clone(c.Pins), slices.Clone(c.PeerSPKI)
	return c
}

// settle takes an answer, whole or not, into the exchange.
func (a *attempt) settle(ans answer) {
	a.ex.Answered, a.ex.Status = ans.answered, ans.status
	a.ex.Header, a.ex.Names, a.ex.Trailer = ans.header, ans.names, ans.trailer
	a.ex.Body, a.ex.TooLarge = ans.body, ans.tooLarge
	if ans.err == nil {
		a.ex.Phase = PhaseDone
		return
	}
	if r, ok := errors.AsType[*refusal](ans.err); ok {
		a.ex.rule, a.ex.why = r.rule, r.why
		a.fail(fault.InvalidResponse, r)
		return
	}
	a.lost(ans.err)
}

// lost ends an attempt that has no whole answer. Only a change of which a byte
// was written leaves the outcome open. A server that refuses the certificate ends
// the handshake with that word, and so has read nothing of the request.
func (a *attempt) lost(cause error) {
	if a.unwelcome(cause) {
		a.fail(fault.RemoteUnauthenticated, errUnwelcome)
		return
	}
	cause = a.timed(cause)
	if a.s.change && a.ex.Wrote {
		a.fail(fault.OutcomeUnknown, cause)
		return
	}
	a.fail(fault.UpstreamUnavailable, cause)
}

// timed words a time-out by the phase in which it came.
func (a *attempt) timed(cause error) error {
	if !errors.Is(cause, os.ErrDeadlineExceeded) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	switch a.ex.Phase {
	case PhaseHeader:
		return fmt.Errorf("no header block within %s: %w", min(a.x.o.HeaderTimeout, a.s.timeout), cause)
	default:
		return fmt.Errorf("not finished within %s: %w", a.s.timeout, cause)
	}
}

// stop takes over why a connection or the credential ended the attempt.
func (a *attempt) stop(st *stop) {
	a.ex.Phase = st.phase
	a.ex.Err = st.err
}

// fail ends the attempt in its present phase.
func (a *attempt) fail(code fault.Code, cause error) {
	err := fault.New(code, fmt.Errorf("%s: %w", a.ex.Phase, cause))
	if a.s.change && a.ex.Wrote {
		err = err.OfChange()
	}
	a.ex.Err = err
}

// release gives the connection back or closes it. After a failure nothing more
// is written: the remote may have stopped reading.
func (a *attempt) release(keep bool) {
	switch {
	case a.ex.Wrote && a.ex.Err != nil:
		a.wire.abort()
		return
	case !keep:
		a.wire.close()
		return
	}
	a.wire.conn.SetDeadline(time.Time{})
	a.lane.put(a.wire)
}
