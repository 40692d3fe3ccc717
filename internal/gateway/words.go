package gateway

import (
	"sync"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

// A call that ends without consuming its id leaves the ledger: the same id
// starts afresh. An agent that was told to ask again would then hear that there
// is no such call, and never why. So its last answer is kept for a while, for
// looking only; a call of the same id is claimed as if there were none.
const (
	// wordsKept is longer than any agent pauses between two looks.
	wordsKept = time.Hour
	// wordsMost bounds the memory: an answer has less than a kilobyte.
	wordsMost = 1024
)

type wordKey struct {
	owner ledger.Owner
	id    string
}

type word struct {
	answer Answer
	at     time.Time
}

// lastWords holds the last answers of calls that were released. Its zero value
// is ready.
type lastWords struct {
	mu  sync.Mutex
	all map[wordKey]word // guarded by mu
}

// note keeps an answer. It is called before the ledger forgets the call, so that
// no look falls between. What a session's end did to a call is told by the
// session itself: a later session must not take it for its own end.
func (w *lastWords) note(o ledger.Owner, id string, f *fault.Error, a Answer) {
	if f.Code() == fault.SessionRevoked {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[wordKey]word)
	}
	now := time.Now()
	if len(w.all) >= wordsMost {
		w.makeRoomLocked(now)
	}
	w.all[wordKey{o, id}] = word{answer: a, at: now}
}

// makeRoomLocked drops what is over, and else the oldest.
func (w *lastWords) makeRoomLocked(now time.Time) {
	var oldest wordKey
	first := now.Add(time.Second)
	for k, v := range w.all {
		if now.Sub(v.at) > wordsKept {
			delete(w.all, k)
		} else if v.at.Before(first) {
			oldest, first = k, v.at
		}
	}
	if len(w.all) >= wordsMost {
		delete(w.all, oldest)
	}
}

// of returns the last answer about an id of this owner.
func (w *lastWords) of(o ledger.Owner, id string) (Answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v, ok := w.all[wordKey{o, id}]
	if !ok || time.Since(v.at) > wordsKept {
		return Answer{}, false
	}
	return v.answer, true
}

// drop forgets an id that starts afresh.
func (w *lastWords) drop(o ledger.Owner, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, wordKey{o, id})
}
