package gateway

import "time"

// deadline is a moment by two clocks: the earlier one wins, so that a step of the
// wall's clock back never lengthens it, and a machine that slept has not stopped
// it.
type deadline struct {
	end    time.Time // by the wall, for the disk too
	steady time.Time // with the monotonic reading
}

func deadlineIn(d time.Duration) deadline {
	end := time.Now().Add(d)
	return deadline{end: end.Round(0), steady: end}
}

// deadlineAt takes up what an earlier run wrote down. A beginning that lies in the
// future, or an end further away than the poll may last, was written under another
// clock: it is over.
func deadlineAt(begun, end time.Time, within time.Duration) deadline {
	now := time.Now()
	wall := now.Round(0)
	left := end.Sub(wall)
	if wall.Before(begun) || left > within {
		left = 0
	}
	return deadline{end: end, steady: now.Add(left)}
}

// left is how long it is until the deadline; zero or less once it is over.
func (d deadline) left() time.Duration {
	return min(time.Until(d.steady), d.end.Sub(time.Now().Round(0)))
}
