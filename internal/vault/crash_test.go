package vault

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"chatelaine/internal/fault"
)

// killsVariable sets how often the save loop is killed; the full count of
// boundary tests is 1000.
const killsVariable = "CHATELAINE_TEST_KILLS"

func init() {
	children["save"] = func(args []string) error {
		v, err := Open(args[0], cheap)
		if err != nil {
			return err
		}
		ctx := context.Background()
		if err := v.Unlock(ctx, sec(goodPass)); err != nil {
			return err
		}
		for {
			text := fmt.Sprintf("secret of generation %020d", v.head.generation+1)
			gen, err := v.Put(ctx, "a", bearer(), sec(text), false)
			if err != nil {
				return err
			}
			fmt.Println(gen)
		}
	}
}

func init() {
	// slots changes the ways in and the data key, over and over.
	children["slots"] = func(args []string) error {
		v, err := Open(args[0], cheap)
		if err != nil {
			return err
		}
		ctx := context.Background()
		if err := v.Unlock(ctx, sec(goodPass)); err != nil {
			return err
		}
		for {
			a, err := v.AddSlot(ctx, NewSlot{Kind: SlotRecovery}, ByPassphrase(sec(goodPass)))
			if err == nil {
				err = v.RemoveSlot(ctx, a.Slot.ID)
			}
			if err == nil {
				_, err = v.RotateKey(ctx, "", sec(goodPass))
			}
			if err != nil {
				return err
			}
			fmt.Println(v.head.generation)
		}
	}
}

// kills is how often a loop is killed in the daily test, or as the variable says.
func kills(daily int) int {
	if n, err := strconv.Atoi(os.Getenv(killsVariable)); err == nil {
		return n
	}
	return daily
}

// TestKillDuringSlotChanges: whatever a kill leaves opens with the passphrase
// that every change kept, and so does the generation before it.
func TestKillDuringSlotChanges(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	sub, err := v.Subkey("ledger")
	if err != nil {
		t.Fatal(err)
	}
	for range kills(10) {
		last := saveAndKill(t, "slots", path)
		for _, p := range []string{path, previousPath(path)} {
			w := reopen(t, p, cheap)
			if got := attached(t, w, "a", madeFor(bearer())); got != "Bearer "+planted {
				t.Fatalf("got %q", got)
			}
			if again, err := w.Subkey("ledger"); err != nil || !again.Equal(sub) {
				t.Fatalf("the ledger's key changed: %v", err)
			}
			if p == path && w.head.generation < last {
				t.Fatalf("generation %d; %d was acknowledged", w.head.generation, last)
			}
		}
		w := reopen(t, path, cheap)
		for len(w.Slots()) > 1 { // what a kill left: a code of nobody
			if err := w.RemoveSlot(t.Context(), w.Slots()[len(w.Slots())-1].ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestKillDuringSaves(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", fmt.Sprintf("secret of generation %020d", v.head.generation+1), bearer())
	for range kills(40) {
		last := saveAndKill(t, "save", path)
		w := reopen(t, path, cheap)
		gen, err := w.Generation(t.Context(), "a")
		if err != nil || gen < last {
			t.Fatalf("generation %d, %v; %d was acknowledged", gen, err, last)
		}
		if got, want := attached(t, w, "a", madeFor(bearer())), fmt.Sprintf("Bearer secret of generation %020d", gen); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		reopen(t, previousPath(path), cheap)
		names, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(names) != 2 {
			t.Fatalf("leftovers: %v, %v", names, err)
		}
	}
}

// saveAndKill runs a save loop, kills it at a random moment and returns the
// last generation that it said was saved.
func saveAndKill(t *testing.T, loop, path string) uint64 {
	cmd := child(t, loop, os.Environ(), path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errText strings.Builder
	cmd.Stderr = &errText
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var last uint64
	if lines.Scan() {
		last, _ = strconv.ParseUint(lines.Text(), 10, 64)
	}
	time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
	for lines.Scan() {
		if n, err := strconv.ParseUint(lines.Text(), 10, 64); err == nil {
			last = n
		}
	}
	_ = cmd.Wait()
	if last == 0 || errText.Len() > 0 {
		t.Fatalf("the child did not save: %s", errText.String())
	}
	return last
}

func TestConcurrentUse(t *testing.T) {
	v, path := create(t, cheap)
	put(t, v, "a", planted, bearer())
	if err := v.SetOperatorPassphrase(sec("operator's own")); err != nil {
		t.Fatal(err)
	}
	v.OnLock(func(string) { v.State() })
	ctx := t.Context()
	lockedOr := func(err error, also fault.Code) {
		if code := fault.CodeOf(err); err != nil && code != fault.VaultLocked && code != also {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	loop := func(n int, f func(i int)) {
		wg.Go(func() {
			for i := range n {
				f(i)
			}
		})
	}
	for range 3 {
		loop(60, func(int) { lockedOr(useOnce(t, v), "") })
	}
	loop(15, func(i int) {
		_, err := v.Put(ctx, "a", bearer(), sec(planted+strconv.Itoa(i)), false)
		lockedOr(err, "")
	})
	loop(15, func(i int) { lockedOr(v.PutState("n", []byte{byte(i)}), "") })
	loop(20, func(int) {
		v.Lock("test")
		time.Sleep(time.Millisecond)
		lockedOr(v.Unlock(ctx, sec(goodPass)), "")
	})
	loop(60, func(int) {
		v.List()
		v.State()
		v.Suspect("nobody")
		_, err := v.ProofParams()
		lockedOr(err, "")
		_, err = v.Subkey("x")
		lockedOr(err, "")
	})
	wg.Wait()
	w := reopen(t, path, cheap)
	attached(t, w, "a", madeFor(bearer()))
	if _, err := w.ProofParams(); err != nil {
		t.Error(err)
	}
}

// useOnce leases identity a, attaches it and searches for it.
func useOnce(t *testing.T, v *Vault) error {
	l, err := v.Lease(t.Context(), "a")
	if err != nil {
		return err
	}
	defer l.Close()
	h := map[string][]string{}
	if err := l.Attach(headers(h), madeFor(bearer())); err != nil || !strings.HasPrefix(h["Authorization"][0], "Bearer "+planted) {
		t.Errorf("got %v, %v", h, err)
	}
	if len(l.Scan([]byte(planted))) == 0 {
		t.Error("the echo is not found")
	}
	return nil
}
