//go:build !linux

package auditlog

import (
	"testing"
	"time"
)

func mountTmpfs(*testing.T, string, int) bool { return false }

// pause lets the writer's own pause after a full disk pass.
func pause() { time.Sleep(20 * time.Millisecond) }
