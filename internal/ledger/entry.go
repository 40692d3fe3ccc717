package ledger

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chatelaine/internal/durable"
)

// Kinds of value in the bucket of calls.
const (
	kindRecord byte = 1 // a call
	kindAlias  byte = 2 // another id that joined a call; the rest is its key
	kindTomb   byte = 3 // a call too old to answer: only its key stays
)

// A record is a clear head and two sealed parts. Only times and keyed digests
// are in the head:
//
//	kind 1 | claimed 8 | ended 8 | input 32 | wrapped entry key 72 | sealed entry
const (
	headSize    = 1 + 8 + 8 + 32
	wrappedSize = 24 + durable.SealKeySize + 16
)

var errRecord = errors.New("an entry of the ledger cannot be read")

// entry is the sealed part of a record.
type entry struct {
	RequestID   string    `json:"request_id"`
	Agent       string    `json:"agent"`
	UID         uint32    `json:"uid"`
	Action      string    `json:"action"`
	Change      bool      `json:"change"`
	State       State     `json:"state"`
	Doubted     bool      `json:"doubted"`
	Attempt     int       `json:"attempt"`
	Idempotency string    `json:"idempotency"`
	Plan        []byte    `json:"plan"`
	PlanDigest  []byte    `json:"plan_digest"`
	IntentSeq   uint64    `json:"intent_seq"`
	ArmedDetail []byte    `json:"armed_detail"`
	Code        string    `json:"code"`
	Sentence    string    `json:"sentence"`
	Envelope    []byte    `json:"envelope"`
	Detail      []byte    `json:"detail"`
	NotBefore   time.Time `json:"not_before"`
	RecordSeq   uint64    `json:"record_seq"`
	Session     string    `json:"session"`
	Now         time.Time `json:"now"`
	Captured    []byte    `json:"captured"`
	Deadline    time.Time `json:"deadline"`
}

// record is one value of the bucket of calls, its entry still sealed.
type record struct {
	claimed, ended time.Time // ended is zero while armed
	input          inputKey
	wrapped        []byte
	sealed         []byte
	head           []byte
	raw            []byte
}

func head(claimed, ended time.Time, input inputKey) []byte {
	h := make([]byte, 0, headSize)
	h = append(h, kindRecord)
	h = binary.BigEndian.AppendUint64(h, uint64(nanos(claimed)))
	h = binary.BigEndian.AppendUint64(h, uint64(nanos(ended)))
	return append(h, input[:]...)
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(b []byte) time.Time {
	n := int64(binary.BigEndian.Uint64(b))
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// parseRecord reads a value of kindRecord.
func parseRecord(b []byte) (*record, error) {
	if len(b) < headSize+wrappedSize || b[0] != kindRecord {
		return nil, errRecord
	}
	r := &record{raw: b, head: b[:headSize], wrapped: b[headSize : headSize+wrappedSize], sealed: b[headSize+wrappedSize:]}
	r.claimed, r.ended = timeOf(b[1:9]), timeOf(b[9:17])
	copy(r.input[:], b[17:headSize])
	return r, nil
}

func wrapPlace(key recordKey) []byte {
	return append([]byte("chatelaine/v1 ledger key\x00"), key[:]...)
}

func entryPlace(key recordKey, head []byte) []byte {
	return bytes.Join([][]byte{[]byte("chatelaine/v1 ledger entry\x00"), key[:], head}, nil)
}

// newEntryKey makes the key of one entry, and the same wrapped.
func newEntryKey(wrap []byte, key recordKey) (plain, wrapped []byte, err error) {
	plain = make([]byte, durable.SealKeySize)
	_, _ = rand.Read(plain) // never fails
	wrapped, err = durable.Seal(wrap, wrapPlace(key), plain)
	return plain, wrapped, err
}

// seal makes the whole value of a record.
func (e *entry) seal(entryKey, wrapped []byte, key recordKey, h []byte) ([]byte, error) {
	plain, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	sealed, err := durable.Seal(entryKey, entryPlace(key, h), plain)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{h, wrapped, sealed}, nil), nil
}

// open unseals a record's entry.
func (r *record) open(wrap []byte, key recordKey) (*entry, []byte, error) {
	entryKey, err := durable.Unseal(wrap, wrapPlace(key), r.wrapped)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	plain, err := durable.Unseal(entryKey, entryPlace(key, r.head), r.sealed)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	var e entry
	if err := json.Unmarshal(plain, &e); err != nil {
		return nil, nil, errRecord // the cause could quote the entry
	}
	return &e, entryKey, nil
}
