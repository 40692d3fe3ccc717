package main

import (
	"encoding/hex"
	"fmt"
	"sort"
	"strings"

	"chatelaine/internal/actions"
	"chatelaine/internal/gateway"
)

// acceptedActions is the name of the vault's sealed fact: which actions an
// operator accepted, as they were then. One line each: digest, name.
const acceptedActions = "accepted-actions"

// acceptedDigest is how much of a digest is kept: enough that no other contract
// has the same, and little enough for a thousand actions.
const acceptedDigest = 16

// acceptSet seals a set as accepted.
func (d *daemon) acceptSet(set *actions.Set) error {
	var lines []string
	for action, pin := range gateway.PinsOf(set) {
		lines = append(lines, shortPin(pin)+" "+action+"\n")
	}
	sort.Strings(lines)
	if err := d.vault.PutState(acceptedActions, []byte(strings.Join(lines, ""))); err != nil {
		return fmt.Errorf("what was accepted could not be kept: %w", err)
	}
	return nil
}

func shortPin(pin string) string { return pin[:min(len(pin), hex.EncodedLen(acceptedDigest))] }

// compareSet holds every action that is not what an operator accepted. A first
// unlock accepts what it finds: the operator has just written it.
func (d *daemon) compareSet() error {
	b, ok, err := d.vault.GetState(acceptedActions)
	if err != nil {
		return err
	}
	if !ok {
		return d.acceptSet(d.gateway.Set())
	}
	accepted := map[string]string{}
	for line := range strings.Lines(string(b)) {
		pin, action, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		accepted[action] = pin
	}
	held := map[string]bool{}
	var names []string
	for action, pin := range d.gateway.Pins() {
		if accepted[action] != shortPin(pin) {
			held[action] = true
			names = append(names, action)
		}
	}
	sort.Strings(names)
	d.gateway.Hold(held)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = nil
	for _, n := range names {
		d.problems = append(d.problems, n+" is not served: it, its target or its identity changed since an operator accepted them; look at them, then `chatelaine reload`")
	}
	if len(names) > 0 {
		d.log.Warn("actions changed since an operator accepted them; they are not served", "actions", strings.Join(names, ", "))
	}
	return nil
}
