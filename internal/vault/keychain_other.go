//go:build !linux

package vault

import "context"

// keychainReady has nothing to ask here: only the Secret Service of Linux
// prompts within the library. Other keychains are bounded by the time-out.
func keychainReady(context.Context) error { return nil }
