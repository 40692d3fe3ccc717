package demo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The frame of the record's format: magic, version, kind, flags, length of the
// body, sequence, then the body and its chain value.
const (
	frameMagic  = 0xA7
	frameHead   = 16
	frameChain  = 32
	kindSealed  = 3
	segmentGlob = "seg-*.alog"
)

// spoil changes one byte inside a sealed record in the middle of a copied
// record and returns the record's sequence.
func spoil(dir string) (seq uint64, err error) {
	files, err := filepath.Glob(filepath.Join(dir, segmentGlob))
	if err != nil || len(files) == 0 {
		return 0, errors.Join(err, fmt.Errorf("there is no segment in %s", dir))
	}
	var path string
	var b []byte
	var sealed []int
	for _, file := range files { // the segment with most of them
		data, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		if at := sealedFrames(data); len(at) > len(sealed) {
			path, b, sealed = file, data, at
		}
	}
	if len(sealed) == 0 {
		return 0, fmt.Errorf("there is no sealed record in %s", dir)
	}
	at := sealed[len(sealed)/2]
	b[at+frameHead+length(b[at:])/2] ^= 1
	return binary.BigEndian.Uint64(b[at+8:]), os.WriteFile(path, b, 0o600)
}

// length is the length of a frame's body.
func length(frame []byte) int { return int(binary.BigEndian.Uint32(frame[4:])) }

// sealedFrames are the offsets of the sealed records.
func sealedFrames(b []byte) []int {
	var out []int
	for at := 0; at+frameHead <= len(b) && b[at] == frameMagic; at += frameHead + length(b[at:]) + frameChain {
		if b[at+2] == kindSealed {
			out = append(out, at)
		}
	}
	return out
}
