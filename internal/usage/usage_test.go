package usage

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/durable"
	"chatelaine/internal/fault"
)

var keys = Keys{Index: bytes.Repeat([]byte{1}, 32), Wrap: bytes.Repeat([]byte{2}, 32)}

func open(t *testing.T, path string) (*Book, *durable.Store) {
	t.Helper()
	store, err := durable.OpenStore(path, time.Second, Buckets()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return Open(store), store
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func TestKeptOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	b, store := open(t, path)
	must(t, b.Unlock(keys))
	b.Note("deploy-bot", 3, noon, true, "")
	b.Note("deploy-bot", 3, noon.Add(time.Second), true, fault.RemoteUnauthenticated)
	b.Note("deploy-bot", 4, noon.Add(-time.Hour), true, fault.RemoteForbidden) // the clock went back
	must(t, b.Lock())
	must(t, store.Close())

	raw, err := os.ReadFile(path)
	must(t, err)
	for _, clear := range []string{"deploy-bot", "REMOTE_UNAUTHENTICATED"} {
		if bytes.Contains(raw, []byte(clear)) {
			t.Errorf("%s stands in clear", clear)
		}
	}

	b, _ = open(t, path)
	if e := b.Get("deploy-bot"); e != (Entry{}) {
		t.Errorf("known while it is locked: %+v", e)
	}
	must(t, b.Unlock(keys))
	e := b.Get("deploy-bot")
	if !e.Used.Equal(noon.Add(time.Second)) || !e.Failed.Equal(noon.Add(time.Second)) || e.Code != fault.RemoteUnauthenticated || e.Generation != 3 {
		t.Errorf("%+v", e)
	}
	must(t, b.Forget("deploy-bot"))
	if e := b.Get("deploy-bot"); e != (Entry{}) {
		t.Errorf("not forgotten: %+v", e)
	}
}

// What is noted while the vault is locked hides nothing that lies on the disk.
func TestNotedWhileLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	b, store := open(t, path)
	must(t, b.Unlock(keys))
	b.Note("a", 1, noon, true, fault.RemoteForbidden)
	must(t, b.Lock())
	must(t, store.Close())

	b, _ = open(t, path)
	b.Note("a", 1, noon.Add(time.Minute), true, "")
	must(t, b.Flush()) // locked: it waits
	must(t, b.Unlock(keys))
	must(t, b.Flush())
	e := b.Get("a")
	if !e.Used.Equal(noon.Add(time.Minute)) || e.Code != fault.RemoteForbidden {
		t.Errorf("%+v", e)
	}
}

func TestAnotherKeyReadsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	b, store := open(t, path)
	must(t, b.Unlock(keys))
	b.Note("a", 1, noon, true, "")
	must(t, b.Lock())
	must(t, store.Close())
	b, _ = open(t, path)
	must(t, b.Unlock(Keys{Index: keys.Index, Wrap: bytes.Repeat([]byte{9}, 32)}))
	if e := b.Get("a"); e != (Entry{}) {
		t.Errorf("%+v", e)
	}
	if err := b.Unlock(Keys{}); err == nil {
		t.Error("keys of no length are taken")
	}
}

func TestWatchFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := open(t, filepath.Join(t.TempDir(), "ledger.db"))
		must(t, b.Unlock(keys))
		ctx, stop := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() { b.Watch(ctx, func(err error) { t.Error(err) }) })
		b.Note("a", 1, noon, true, "")
		time.Sleep(FlushEvery - time.Second)
		if kept(t, store) {
			t.Error("written before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !kept(t, store) {
			t.Error("not written")
		}
		stop()
		watch.Wait()
	})
}

// kept says whether anything is known by a book that has only the disk.
func kept(t *testing.T, store *durable.Store) bool {
	b := Open(store)
	must(t, b.Unlock(keys))
	return b.Get("a") != Entry{}
}

func FuzzDecode(f *testing.F) {
	f.Add(Entry{Used: noon, Failed: noon, Code: fault.Internal, Generation: 7}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(e.encode())
		if err != nil || again != e {
			t.Errorf("%+v, again %+v: %v", e, again, err)
		}
	})
}
