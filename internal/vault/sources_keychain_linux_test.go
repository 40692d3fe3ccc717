package vault_test

func keychainRows(row func(name, address, text string) failure) []failure {
	return []failure{
		row("no bus", "unix:path=/no/such/bus", "cannot be reached"),
		row("a bus over a network", "tcp:host=127.0.0.1,port=1", "not a Unix socket"),
		row("a bus that is a program", "unixexec:path=/bin/false", "not a Unix socket"),
	}
}
