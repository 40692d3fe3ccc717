//go:build !linux

package doctor

import "context"

// systemChecks say what is not looked at here: the questions are Linux's, and
// the answers of this system are for its own tools.
func systemChecks() []check {
	var out []check
	for _, q := range [][2]string{
		{"memory", "read the daemon's memory"},
		{"memory-call", "read the daemon's memory by a system call"},
		{"environ", "read the daemon's environment"},
		{"descriptors", "look at the daemon's open files"},
		{"descriptor-copy", "copy an open file of the daemon"},
		{"trace", "attach to the daemon as a debugger"},
		{"exec-window", "open the daemon's memory in the instant after exec, and keep it open"},
		{"core", "make the daemon dump its memory to disk"},
		{"swap", "find the vault's key on the swap disk"},
		{"clock", "let a clock that is wrong make old answers fresh"},
	} {
		out = append(out, check{[]string{q[0]}, func(context.Context, *exam) []Finding {
			return []Finding{unseen(q[0], q[1], "not looked at on this system: debuggers want a right from the system, and swap is encrypted by it", "")}
		}})
	}
	return out
}

// keychain is not looked at: asking would open a prompt.
func (e *exam) keychain(context.Context) Finding {
	return unseen(keychainID, keychainAttack, "not looked at on this system: a program that asks may open a prompt, and any shell may use the tool that was allowed once", "vault.backend: file")
}
