//go:build !linux

package vault_test

// The keychains of other systems have no address that could be wrong.
func keychainRows(func(name, address, text string) failure) []failure { return nil }
