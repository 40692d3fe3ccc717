package ledger

import (
	"strconv"
	"strings"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

// operatorID is what a person types: an id, and where needed whose.
type operatorID struct {
	id, agent string
	uid       uint32
	hasUID    bool
}

func parseOperatorID(s string) operatorID {
	id, agent, _ := strings.Cut(s, "@")
	o := operatorID{id: id, agent: agent}
	if name, uid, ok := strings.Cut(agent, ":"); ok {
		if n, err := strconv.ParseUint(uid, 10, 32); err == nil {
			o.agent, o.uid, o.hasUID = name, uint32(n), true
		}
	}
	return o
}

func (o operatorID) matches(e *entry) bool {
	return e.RequestID == o.id && (o.agent == "" || e.Agent == o.agent) && (!o.hasUID || e.UID == o.uid)
}

// findLocked finds the one entry on the disk that an operator's id names. With
// onlyOpen, entries that are not unresolved give way to the one that is.
func (l *Ledger) findLocked(requestID string, onlyOpen bool) (found, *entry, []byte, error) {
	want := parseOperatorID(requestID)
	keys, err := l.keysLocked(want.id)
	if err != nil {
		return found{}, nil, nil, err
	}
	type hit struct {
		f found
		e *entry
		k []byte
	}
	var hits, openHits []hit
	for _, key := range keys {
		f, err := l.readLocked(key)
		if err != nil {
			return found{}, nil, nil, err
		}
		if f.rec == nil || f.key != key {
			continue
		}
		e, k, err := l.entryLocked(f)
		if err != nil {
			return found{}, nil, nil, err
		}
		if !want.matches(e) {
			continue
		}
		hits = append(hits, hit{f, e, k})
		if _, open := l.open[key]; open {
			openHits = append(openHits, hit{f, e, k})
		}
	}
	if onlyOpen && len(openHits) > 0 {
		hits = openHits
	}
	switch len(hits) {
	case 0:
		return found{}, nil, nil, ErrNotFound
	case 1:
		return hits[0].f, hits[0].e, hits[0].k, nil
	}
	return found{}, nil, nil, ErrAmbiguous
}

func (l *Ledger) keysLocked(id string) ([]recordKey, error) {
	prefix := l.operatorKeyLocked(id)
	var keys []recordKey
	err := l.store.View(func(tx durable.Tx) error {
		return tx.Prefix(bucketIDs, prefix, func(k, _ []byte) error {
			if len(k) == len(prefix)+len(recordKey{}) {
				keys = append(keys, recordKey(k[len(prefix):]))
			}
			return nil
		})
	})
	if err != nil {
		return nil, fault.New(fault.Internal, err)
	}
	return keys, nil
}
