package auditlog

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzFrame: whatever parses as a frame is encoded back to the same bytes, and
// no input makes the parser or the scanner panic or read beyond it.
func FuzzFrame(f *testing.F) {
	dir, _ := sampleLog(f, 3)
	for _, name := range segments(f, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		for off := 0; off < len(data); {
			fr, err := parseFrame(data[off:])
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data[off : off+fr.size()])
			off += fr.size()
		}
	}
	f.Add([]byte{})
	f.Add([]byte{frameMagic})
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s scanner
		if broken, _ := s.scanFile(b, true, nil); broken == nil && s.records == 0 {
			t.Error("a file without records passes")
		}
		laterCommit(b, 0, 1)
		fr, err := parseFrame(b)
		if err != nil {
			return
		}
		again := make([]byte, headerSize)
		putHeader(again, fr.kind, fr.flags, len(fr.body), fr.seq)
		again = append(append(again, fr.body...), fr.chain[:]...)
		if !bytes.Equal(again, b[:fr.size()]) {
			t.Error("a frame has two spellings")
		}
	})
}

// FuzzBody: control bodies that parse are encoded back to the same bytes.
func FuzzBody(f *testing.F) {
	dir, _ := sampleLog(f, 3)
	for _, name := range segments(f, dir) {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		for off := 0; off < len(data); {
			fr, _ := parseFrame(data[off:])
			f.Add(fr.body)
			off += fr.size()
		}
	}
	r := recoverBody{bytes: 3, reason: recoverTorn, lastSeq: 9}
	f.Add(r.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(what string, enc []byte) {
			if !bytes.Equal(enc, b) {
				t.Errorf("a %s body has two spellings", what)
			}
		}
		if s, err := parseSegment(b); err == nil {
			same("SEGMENT", s.encode())
		}
		if e, err := parseEpoch(b); err == nil {
			same("EPOCH", append(e.unsigned(), e.sig[:]...))
		}
		if r, err := parseRecover(b); err == nil {
			same("RECOVER", r.encode())
		}
		parsePrune(b)
		parseClose(b)
		verifyCheckpoint(b, &tree{}, [32]byte{})
	})
}

// FuzzPlaintext: no plaintext makes the decoder panic, and an event that was
// read is written and read as the same event.
func FuzzPlaintext(f *testing.F) {
	f.Add([]byte(`{"event_id":"evt_1","type":"deny","wall":"2026-01-02T03:04:05.6Z"}`))
	f.Add([]byte("{\"type\":\"answer\",\"wall\":\"2026-01-02T03:04:05Z\",\"body_len\":3}\x00abc\x00\x00"))
	f.Add([]byte(`{"type":"intent","wall":"2026-01-02T03:04:05Z","detail":{"n":1e400,"l":[null,true,"\u0000"]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		ev, err := decodeEvent(b)
		if err != nil {
			return
		}
		enc, err := encodeEvent(&ev)
		if err != nil {
			return // a type of a later release
		}
		back, err := decodeEvent(enc)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := json.Marshal(ev.Detail)
		y, _ := json.Marshal(back.Detail)
		if !bytes.Equal(x, y) || !back.Wall.Equal(ev.Wall) || !bytes.Equal(back.Body, ev.Body) {
			t.Errorf("%+v became %+v", ev, back)
		}
		ev.Detail, back.Detail, ev.Wall = nil, nil, back.Wall
		if !reflect.DeepEqual(ev, back) {
			t.Errorf("%+v became %+v", ev, back)
		}
	})
}
