// Package demo plays the product's main job from start to end: a throw-away
// home, a release service over HTTPS, the real daemon and the real command
// line, an agent that asks and an operator that decides, a remote system that
// lies, a crash, the record, and last a search for the credential. Each line
// that it prints is a claim beside what was observed, and it succeeds only if
// every claim holds.
//
// It must never touch an existing installation, reach outside this machine or
// leave anything behind unasked. It drives the product as a stranger would: by
// its programs and its sockets. Only internal/demo/cmd and tests may import it.
package demo
