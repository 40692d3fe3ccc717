package kvserver

import (
	"io"
	"log"
)

// quiet keeps failed handshakes, which tests make on purpose, out of the output.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
