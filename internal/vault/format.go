package vault

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"

	"chatelaine/internal/secret"
)

// The layout of the file is in docs/vault.md; these are its numbers.
const (
	magic         = "chatelaine-vault"
	formatVersion = 1
	idBytes       = 16
	macBytes      = sha256.Size
	maxSlots      = 16
	maxSlotParams = 4 << 10 // a passkey or credential slot will need some
	maxWrapped    = 4 << 10
	// maxFile bounds what is read and what is saved: a thousand identities with the
	// longest secrets stay below it, where few have a long list of repositories.
	maxFile = 16 << 20
)

// header is the clear part: it says how to open the vault, and its MAC under
// the data key says that nobody changed it.
type header struct {
	id         [idBytes]byte
	generation uint64
	slots      []slot
}

// image is a decoded file whose MAC and body are not checked yet.
type image struct {
	header
	head []byte // the header's bytes, as the MAC covers them
	mac  []byte
	body []byte // sealed
}

func (h header) encode() []byte {
	w := &writer{}
	w.raw([]byte(magic))
	w.u16(formatVersion)
	w.raw(h.id[:])
	w.u64(h.generation)
	w.u8(uint8(len(h.slots)))
	for _, s := range h.slots {
		w.raw(s.id[:])
		w.u8(s.kind)
		w.blob(s.params)
		w.blob(s.wrapped)
	}
	return w.b
}

// decodeFile reads the outer layout. Its errors say which part is wrong, never
// what is in it.
func decodeFile(b []byte) (image, error) {
	if len(b) > maxFile {
		return image{}, damaged("larger than %d bytes", maxFile)
	}
	if len(b) < len(magic)+2 || string(b[:len(magic)]) != magic {
		return image{}, damaged("not a vault file")
	}
	if len(b) < macBytes {
		return image{}, damaged("cut short")
	}
	content, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if want := sha256.Sum256(content); !bytes.Equal(want[:], sum) {
		return image{}, damaged("the checksum does not fit: torn or altered")
	}
	r := &reader{b: content}
	img := image{header: decodeHeader(r)}
	img.head = content[:len(content)-len(r.b)]
	img.mac = r.take(macBytes)
	img.body = r.blob(maxFile)
	if !r.done() {
		return image{}, damaged("its structure is wrong")
	}
	return img, nil
}

func decodeHeader(r *reader) header {
	var h header
	r.take(len(magic))
	if r.u16() != formatVersion {
		r.bad = true
	}
	r.fill(h.id[:])
	h.generation = r.u64()
	n := int(r.u8())
	if n < 1 || n > maxSlots || h.generation == 0 {
		r.bad = true
	}
	var cost uint64
	for range n {
		if r.bad {
			break
		}
		s := slot{}
		r.fill(s.id[:])
		s.kind = r.u8()
		s.params = r.blob(maxSlotParams)
		s.wrapped = r.blob(maxWrapped)
		cost += s.check(r)
		if _, twice := h.find(s.hex()); twice {
			r.bad = true
		}
		h.slots = append(h.slots, s)
	}
	if cost > maxKDFCost {
		r.bad = true
	}
	return h
}

// encodeFile seals the contents and signs the header.
func encodeFile(h header, dataKey secret.Secret, c *contents) ([]byte, error) {
	if err := h.fits(); err != nil {
		return nil, err
	}
	hk, err := derive(dataKey, infoHeader)
	if err != nil {
		return nil, err
	}
	defer hk.Wipe()
	bk, err := derive(dataKey, infoBody)
	if err != nil {
		return nil, err
	}
	defer bk.Wipe()
	text, err := c.encode()
	if err != nil {
		return nil, err
	}
	defer clear(text)
	if err := readsAgain(text); err != nil {
		return nil, err
	}
	head := h.encode()
	sum := mac(hk, head)
	body, err := seal(bk, text, append(bytes.Clone(head), sum...))
	if err != nil {
		return nil, err
	}
	w := &writer{b: head}
	w.raw(sum)
	w.blob(body)
	check := sha256.Sum256(w.b)
	w.raw(check[:])
	if len(w.b) > maxFile {
		return nil, fmt.Errorf("%w: the file would be larger than %d bytes", ErrTooLarge, maxFile)
	}
	return w.b, nil
}

// errUnreadable is a mistake of this package. Saving it would close the vault to its
// owner.
var errUnreadable = errors.New("what would be saved could not be read again; nothing was written")

// readsAgain proves that the contents can be opened as they are about to be saved:
// what is in them may be as long as a server made it.
func readsAgain(text []byte) error {
	c, err := decodeContents(text)
	c.wipe()
	if err != nil {
		return errUnreadable // not that the vault is damaged
	}
	return nil
}

// open checks the header's MAC and unseals the contents.
func (img image) open(dataKey secret.Secret) (*contents, error) {
	hk, err := derive(dataKey, infoHeader)
	if err != nil {
		return nil, err
	}
	defer hk.Wipe()
	if !hmac.Equal(mac(hk, img.head), img.mac) {
		return nil, damaged("its header was altered")
	}
	bk, err := derive(dataKey, infoBody)
	if err != nil {
		return nil, err
	}
	defer bk.Wipe()
	text, err := unseal(bk, img.body, append(bytes.Clone(img.head), img.mac...))
	if errors.Is(err, errUnsealed) {
		return nil, damaged("its contents were altered")
	}
	if err != nil {
		return nil, err
	}
	defer clear(text)
	return decodeContents(text)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}
