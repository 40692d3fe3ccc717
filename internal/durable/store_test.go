package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary is its own child for what only another process can show.
const childEnv = "CHATELAINE_STORE_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "writer":
		childWriter(os.Args[len(os.Args)-1])
	case "full":
		childFull(os.Args[len(os.Args)-1])
	case "holder":
		childHolder(os.Args[len(os.Args)-1])
	}
}

func child(t *testing.T, mode, path string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$", path)
	c.Env = append(os.Environ(), childEnv+"="+mode)
	c.Stderr = os.Stderr
	return c
}

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := OpenStore(path, time.Second, "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func get(t *testing.T, s *Store, key string) string {
	t.Helper()
	var v []byte
	if err := s.View(func(tx Tx) error { v = tx.Get("b", []byte(key)); return nil }); err != nil {
		t.Fatal(err)
	}
	return string(v)
}

func TestStoreKeepsWhatItAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	if err := s.Put("b", []byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("a second Close: %v", err)
	}
	if got := get(t, open(t, path), "k"); got != "v" {
		t.Fatalf("got %q", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
}

func TestStoreGroupCommit(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	errMine := errors.New("mine")
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			key := []byte(strconv.Itoa(i))
			err := s.Update(func(tx Tx) error {
				if err := tx.Put("b", key, key); err != nil {
					return err
				}
				if i%7 == 0 {
					return errMine
				}
				return nil
			})
			if i%7 == 0 != errors.Is(err, errMine) {
				t.Errorf("write %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range 200 {
		want := strconv.Itoa(i)
		if i%7 == 0 {
			want = "" // one that fails is left out, whole, and hurts no other
		}
		if got := get(t, s, strconv.Itoa(i)); got != want {
			t.Fatalf("key %d: %q", i, got)
		}
	}
}

func TestStoreTx(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	err := s.Update(func(tx Tx) error {
		for _, k := range []string{"aa1", "aa2", "ab1", "b"} {
			if err := tx.Put("b", []byte(k), []byte("x")); err != nil {
				return err
			}
		}
		return tx.Delete("b", []byte("nobody"))
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = s.View(func(tx Tx) error {
		if err := tx.Put("b", []byte("k"), nil); err == nil {
			t.Error("a View wrote")
		}
		if tx.Get("nobucket", []byte("k")) != nil {
			t.Error("a value out of no bucket")
		}
		return tx.Prefix("b", []byte("aa"), func(k, _ []byte) error { got = append(got, string(k)); return nil })
	})
	if err != nil || strings.Join(got, " ") != "aa1 aa2" {
		t.Fatalf("%q, %v", got, err)
	}
	errStop := errors.New("stop")
	if err := s.View(func(tx Tx) error { return tx.ForEach("b", func(_, _ []byte) error { return errStop }) }); !errors.Is(err, errStop) {
		t.Fatalf("%v", err)
	}
	for _, f := range []func(Tx) error{
		func(tx Tx) error { return tx.Put("nobucket", []byte("k"), nil) },
		func(tx Tx) error { return tx.Delete("nobucket", []byte("k")) },
		func(tx Tx) error { return tx.ForEach("nobucket", nil) },
		func(tx Tx) error { return tx.Put("b", nil, nil) },
	} {
		if err := s.Update(f); err == nil {
			t.Error("no error")
		}
	}
	if get(t, s, "b") != "x" {
		t.Error("a failed write broke the store")
	}
}

func TestStoreHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	c := child(t, "holder", path)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 1))
	_, err = OpenStore(path, 50*time.Millisecond, "b")
	if !errors.Is(err, ErrStoreHeld) || !strings.Contains(err.Error(), path) {
		t.Fatalf("%v", err)
	}
	_ = in.Close()
	_ = c.Wait()
	open(t, path)
}

func childHolder(path string) {
	if _, err := OpenStore(path, time.Second, "b"); err != nil {
		panic(err)
	}
	fmt.Print("x")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestStoreClosed(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	_ = s.Close()
	if err := s.Put("b", []byte("k"), nil); !errors.Is(err, ErrStoreClosed) {
		t.Fatalf("%v", err)
	}
	if err := s.View(func(Tx) error { return nil }); !errors.Is(err, ErrStoreClosed) {
		t.Fatalf("%v", err)
	}
}

// TestStoreDamaged spoils a store in every page and every way: an error, with
// the path in it, or the old values; never a panic and never another value. The
// store's pages are as large as the machine's.
func TestStoreDamaged(t *testing.T) {
	dir, page := t.TempDir(), os.Getpagesize()
	path := filepath.Join(dir, "s.db")
	s := open(t, path)
	value := bytes.Repeat([]byte("v"), 300)
	for i := range 60 {
		if err := s.Put("b", []byte(strconv.Itoa(i)), value); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	garbage := bytes.Repeat([]byte("not a store "), 2000)
	spoilt := map[string][]byte{
		"empty": {}, "garbage": garbage, "short": []byte("x"), "first page only": good[:page],
		"both metas": append(bytes.Repeat([]byte{0xff}, 2*page), good[2*page:]...),
	}
	must := len(spoilt)
	for p := 0; p < len(good); p += page {
		for name, fill := range map[string]byte{"zeros": 0, "ones": 0xff} {
			b := bytes.Clone(good)
			copy(b[p:p+page], bytes.Repeat([]byte{fill}, page))
			spoilt[fmt.Sprintf("page %d %s", p/page, name)] = b
		}
		spoilt[fmt.Sprintf("cut at page %d", p/page)] = good[:p]
	}
	refused := 0
	for name, b := range spoilt {
		bad := filepath.Join(dir, "bad.db")
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenStore(bad, time.Second, "b")
		if err != nil {
			refused++
			if errors.Is(err, ErrStoreHeld) {
				t.Fatalf("%s: the store before it still holds the file", name)
			}
			if !strings.Contains(err.Error(), bad) && name != "short" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		err = s.View(func(tx Tx) error {
			return tx.ForEach("b", func(_, v []byte) error {
				if !bytes.Equal(v, value) {
					t.Errorf("%s: another value", name)
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, ErrStoreDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		_ = s.Close()
	}
	if refused < must {
		t.Errorf("only %d of %d spoilt stores were refused", refused, len(spoilt))
	}
}

func TestStoreUnfinishedCreation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	if err := os.WriteFile(path+".new", []byte("half a store"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%v", err)
	}
	if _, err := OpenStore(filepath.Join(t.TempDir(), "no", "s.db"), 0, "b"); err == nil {
		t.Fatal("a store in no folder")
	}
}

// TestStoreBroken: after a failed sync a later good one would prove nothing.
func TestStoreBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	if err := s.Put("b", []byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	_ = s.failed(&os.PathError{Op: "sync", Path: path, Err: syscall.EIO})
	if err := s.Put("b", []byte("k"), []byte("w")); !errors.Is(err, ErrStoreBroken) {
		t.Fatalf("%v", err)
	}
	if get(t, s, "k") != "v" {
		t.Fatal("reading must go on")
	}
	_ = s.Close()
	if err := open(t, path).Put("b", []byte("k"), []byte("w")); err != nil {
		t.Fatal(err)
	}
}

// TestStoreFull fills a real limit in a child: the write is refused whole, and
// works again once there is room.
func TestStoreFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	out, err := child(t, "full", path).Output()
	if err != nil || string(out) != "ok" {
		t.Fatalf("%q, %v", out, err)
	}
	s := open(t, path)
	if get(t, s, "before") == "" || get(t, s, "big") != "" || get(t, s, "after") == "" {
		t.Fatal("the store does not hold what was acknowledged")
	}
}

func childFull(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := OpenStore(path, time.Second, "b")
	check(err)
	check(s.Put("b", []byte("before"), []byte("x")))
	info, err := os.Stat(path)
	check(err)
	var old syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(info.Size()), Max: old.Max}))
	err = s.Put("b", []byte("big"), bytes.Repeat([]byte("y"), 1<<20))
	if !errors.Is(err, ErrStoreFull) {
		panic(fmt.Sprintf("a full disk: %v", err))
	}
	check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	check(s.Put("b", []byte("after"), []byte("x")))
	fmt.Print("ok")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// TestStoreKill kills a writer again and again: what it said was written is
// there, in order and without a hole.
func TestStoreKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	for round := range 5 {
		c := child(t, "writer", path)
		out, err := c.StdoutPipe()
		check(err)
		check(c.Start())
		var said bytes.Buffer
		_, err = io.CopyN(&said, out, 1) // a slow machine takes its time to start
		check(err)
		time.AfterFunc(time.Duration(25*round)*time.Millisecond, func() { _ = c.Process.Kill() })
		_, _ = said.ReadFrom(out)
		_ = c.Wait()
		lines := strings.Fields(said.String())
		s := open(t, path)
		for _, l := range lines {
			if get(t, s, l) != l {
				t.Fatalf("round %d: %s was acknowledged and is gone", round, l)
			}
		}
		_ = s.Close()
	}
}

func childWriter(path string) {
	s, err := OpenStore(path, 5*time.Second, "b")
	check(err)
	for i := 0; ; i++ {
		k := fmt.Sprintf("%d.%d", os.Getpid(), i)
		check(s.Put("b", []byte(k), []byte(k)))
		fmt.Println(k)
	}
}
