package main

import "golang.org/x/sys/unix"

// keepPrivate runs before a passphrase or a secret is read: no other process of
// this user may read this one's memory from then on, and no dump may hold it
// (prctl(2), PR_SET_DUMPABLE). Not earlier: the daemon looks at the program that
// asks for a session, and could then not see which it is.
func keepPrivate() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // an old kernel without it is no reason to ask nothing
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
