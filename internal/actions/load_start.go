package actions

import "runtime/debug"

// Go collects when what was allocated since the last collection is as large as
// what lives. A load allocates about a megabyte for each contract and keeps a
// seventh of it, so a third of its time went into collecting. At the start of a
// program nothing else lives yet: four times as much may lie about until the set
// is there.
const (
	startGCPercent   = 400
	defaultGCPercent = 100 // of the Go runtime
)

// LoadSetAtStart is LoadSet for a program that has just begun, or that ends soon:
// it collects less often while it loads. A program that answers meanwhile takes
// LoadSet. It changes a setting of the whole process and sets it back; two of them
// must not run at once. A GOGC that the operator chose stays, and so does any
// GOMEMLIMIT, which the runtime keeps to all the same.
func LoadSetAtStart(sitePath, contractsDir string) (*Set, Problems) {
	was := debug.SetGCPercent(startGCPercent)
	if was != defaultGCPercent {
		debug.SetGCPercent(was)
	}
	defer debug.SetGCPercent(was)
	return LoadSet(sitePath, contractsDir)
}
