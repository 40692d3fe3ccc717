package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"chatelaine/internal/fault"
	"chatelaine/internal/ledger"
)

func TestLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w lastWords
		a, b := ledger.Owner{Agent: "a", UID: 1}, ledger.Owner{Agent: "b", UID: 1}
		expired := fault.New(fault.ApprovalExpired, nil)
		w.note(a, "call-0001", expired, Answer{Status: 403})
		if ans, ok := w.of(a, "call-0001"); !ok || ans.Status != 403 {
			t.Fatalf("kept %+v, %v", ans, ok)
		}
		if _, ok := w.of(b, "call-0001"); ok {
			t.Error("another agent hears of it")
		}
		w.drop(a, "call-0001")
		if _, ok := w.of(a, "call-0001"); ok {
			t.Error("an id that starts afresh still has its old answer")
		}
		w.note(a, "call-0002", fault.New(fault.SessionRevoked, nil), Answer{Status: 403})
		if _, ok := w.of(a, "call-0002"); ok {
			t.Error("a later session would take this for its own end")
		}
		w.note(a, "call-0003", expired, Answer{})
		time.Sleep(wordsKept + time.Second)
		if _, ok := w.of(a, "call-0003"); ok {
			t.Error("kept too long")
		}
	})
}

func TestLastWordsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w lastWords
		o := ledger.Owner{Agent: "a"}
		for i := range wordsMost + 10 {
			w.note(o, fmt.Sprint("call-", i), fault.New(fault.ApprovalExpired, nil), Answer{})
			time.Sleep(time.Millisecond)
		}
		if len(w.all) != wordsMost {
			t.Fatalf("%d kept", len(w.all))
		}
		if _, ok := w.of(o, "call-0"); ok {
			t.Error("the oldest is kept")
		}
		if _, ok := w.of(o, fmt.Sprint("call-", wordsMost+9)); !ok {
			t.Error("the newest is not kept")
		}
	})
}
