package gateway

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A record that refuses: a lookup's end is not told, nothing is consumed; a poll
// sends nothing more in this run, and the next one goes on.
func TestTheRecordRefuses(t *testing.T) {
	t.Run("while looking", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			r := newRig(t, job(false, false))
			r.remote.answer(func(string, string, string) reply {
				r.spoil()
				return noSuch
			})
			r.want(r.call("start_job", "latch-0001", jobInput), "AUDIT_UNAVAILABLE")
			r.sent("GET /heads/build")
			if run, un := r.ledger.Counts(); run+un != 0 {
				t.Errorf("%d run, %d unresolved", run, un)
			}
			r.restart()
			s := said{head: headIs, post: taken, run: []reply{done}}
			r.remote.answer(s.script())
			r.want(r.call("start_job", "latch-0001", jobInput), "IN_PROGRESS")
			r.want(r.look("latch-0001", 30*time.Second), "OK")
		})
	})
	t.Run("while polling", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			r := newRig(t, job(false, false))
			s := said{head: headIs, post: taken, run: []reply{waits}}
			r.remote.answer(s.script())
			r.want(r.call("start_job", "latch-0002", jobInput), "IN_PROGRESS")
			time.Sleep(6 * time.Second)
			r.spoil()
			time.Sleep(20 * time.Second)
			polls := len(r.remote.requests())
			for _, wait := range []time.Duration{0, 30 * time.Second} {
				r.want(r.look("latch-0002", wait), "IN_PROGRESS")
			}
			r.want(r.call("start_job", "latch-0002", jobInput), "IN_PROGRESS")
			if n := len(r.remote.requests()); n != polls {
				t.Errorf("%d requests were sent without a record", n-polls)
			}
			s.mu.Lock()
			s.run = []reply{done}
			s.mu.Unlock()
			r.restart()
			r.want(r.look("latch-0002", 10*time.Second), "OK")
			if n := strings.Count(strings.Join(r.remote.requests(), " "), "POST"); n != 1 {
				t.Errorf("sent %v", r.remote.requests())
			}
		})
	})
}

// restart ends a run whose record has latched, and begins the next.
func (r *rig) restart() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	r.must(r.g.Drain(ctx))
	r.g.stop()
	r.sessions.Close()
	r.exec.Close()
	r.must(r.store.Close())
	_ = r.log.Close() // says why it latched
	r.start()
}

// spoil makes the record's next write fail: someone else cut the file that it
// appends to.
func (r *rig) spoil() {
	files, err := filepath.Glob(r.path("audit/seg-*.alog"))
	if err != nil || len(files) == 0 {
		r.t.Errorf("no record: %v", err)
		return
	}
	newest := files[len(files)-1]
	info, err := os.Stat(newest)
	if err == nil {
		err = os.Truncate(newest, info.Size()-1)
	}
	if err != nil {
		r.t.Error(err)
	}
}
