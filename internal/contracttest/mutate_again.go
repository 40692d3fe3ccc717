package contracttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// metBefore says of each answer of a fixture whether another one stands for it:
// the answer before it, which a poll met again, or the answer of an earlier
// fixture of the action with the same call and the same answers up to there. A
// reader then judges the same near-misses in the same scope. met holds what the
// earlier fixtures had.
func metBefore(met map[[sha256.Size]byte]bool, pl played) []bool {
	again := make([]bool, len(pl.trace))
	input, err := json.Marshal(pl.fx.input)
	if !pl.ok || err != nil {
		return again // what it accepts is not settled, or cannot be compared
	}
	course := sha256.New()
	fmt.Fprintf(course, "%q %q %q %q %q\n", pl.fx.action, input, pl.fx.now, pl.fx.idempotencyKey, pl.fx.callID)
	for i, a := range pl.trace {
		fmt.Fprintf(course, "%q %d %q\n", a.step, a.raw.Status, a.raw.Body)
		for _, name := range slices.Sorted(maps.Keys(a.raw.Header)) {
			fmt.Fprintf(course, "%q %q\n", name, a.raw.Header[name])
		}
		var upTo [sha256.Size]byte
		course.Sum(upTo[:0])
		again[i] = met[upTo] || i > 0 && a.repeats(pl.trace[i-1])
		met[upTo] = true
	}
	return again
}

// repeats says whether an answer is the one before it once more.
func (a provedAnswer) repeats(before provedAnswer) bool {
	return a.step == before.step && a.raw.Status == before.raw.Status &&
		bytes.Equal(a.raw.Body, before.raw.Body) && maps.EqualFunc(a.raw.Header, before.raw.Header, slices.Equal)
}
