package auditlog

import (
	"fmt"
	"os"
	"time"
)

// Defaults of Options.
const (
	// DefaultSegmentBytes makes a scan of the newest segment at start a matter
	// of milliseconds.
	DefaultSegmentBytes = 16 << 20
	// DefaultEpochRecords and DefaultEpochAge bound what one leaked epoch key
	// opens, at about 2 bytes a record for wrapping it anew.
	DefaultEpochRecords = 1024
	DefaultEpochAge     = 15 * time.Minute
	// DefaultCommitDeadline is far above a slow disk's sync and short enough
	// that a caller is denied instead of left waiting.
	DefaultCommitDeadline = 5 * time.Second
	// DefaultRing is how many events of this run are kept for the journals.
	DefaultRing = 10_000
)

// minSegmentBytes leaves room for the head of a segment and some events.
const minSegmentBytes = 16 << 10

// Options says how a log is written. Zero values take the defaults.
type Options struct {
	Dir            string      // the record's folder, made by Create
	Recipients     []Recipient // at least two; a change takes effect at once
	SegmentBytes   int64       // size of a segment on disk
	EpochRecords   int         // events sealed under one seed
	EpochAge       time.Duration
	CommitDeadline time.Duration
	Ring           int         // events kept in memory, without their bodies
	OnLatch        func(error) // called once, when writing failed for good; must not block

	// seam lets tests stand between the writer and its files.
	seam func(segmentFile) segmentFile
	// makeFile lets tests run out of disk.
	makeFile func(path string, size int64, fill bool) (*os.File, error)
}

func (o Options) withDefaults() Options {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.EpochRecords == 0 {
		o.EpochRecords = DefaultEpochRecords
	}
	if o.EpochAge == 0 {
		o.EpochAge = DefaultEpochAge
	}
	if o.CommitDeadline == 0 {
		o.CommitDeadline = DefaultCommitDeadline
	}
	if o.Ring == 0 {
		o.Ring = DefaultRing
	}
	if o.seam == nil {
		o.seam = func(f segmentFile) segmentFile { return f }
	}
	if o.makeFile == nil {
		o.makeFile = makeFile
	}
	return o
}

func (o Options) check() error {
	if err := checkRecipients(o.Recipients); err != nil {
		return err
	}
	switch {
	case o.SegmentBytes < minSegmentBytes || o.SegmentBytes > maxFileBytes:
		return fmt.Errorf("auditlog: a segment of %d bytes; it must have %d to %d", o.SegmentBytes, minSegmentBytes, maxFileBytes)
	case o.EpochRecords < 1 || o.EpochRecords > DefaultEpochRecords:
		return fmt.Errorf("auditlog: an epoch of %d records; it must have 1 to %d", o.EpochRecords, DefaultEpochRecords)
	case o.EpochAge < 0 || o.EpochAge > DefaultEpochAge:
		return fmt.Errorf("auditlog: an epoch of %s; it may last %s at most", o.EpochAge, DefaultEpochAge)
	case o.CommitDeadline < 0 || o.Ring < 0:
		return fmt.Errorf("auditlog: a negative limit")
	}
	return nil
}
