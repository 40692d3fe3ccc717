package ledger

import (
	"bytes"
	"testing"
	"time"
)

// FuzzRecord: whatever bytes stand in the store, reading them gives a record
// that writes the same bytes again, or an error; and none but ours opens.
func FuzzRecord(f *testing.F) {
	key := recordKey{1}
	entryKey, wrapped, err := newEntryKey(testKeys.Wrap, key)
	if err != nil {
		f.Fatal(err)
	}
	e := &entry{RequestID: "deploy-0001", State: Finished}
	good, err := e.seal(entryKey, wrapped, key, head(time.Unix(1, 2), time.Time{}, inputKey{3}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(good[:headSize])
	f.Add([]byte{kindTomb})
	f.Add([]byte{kindRecord})
	f.Add(aliasValue(key))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		if !bytes.Equal(bytes.Join([][]byte{head(r.claimed, r.ended, r.input), r.wrapped, r.sealed}, nil), b) {
			t.Fatal("another spelling")
		}
		if e, _, err := r.open(testKeys.Wrap, key); err == nil && (e.RequestID != "deploy-0001" || len(b) != len(good)) {
			t.Fatal("something opened that was never sealed")
		}
		if _, _, err := r.open(testKeys.Wrap, recordKey{2}); err == nil {
			t.Fatal("opened in another place")
		}
	})
}
