#!/usr/bin/env python3
"""A second verifier of the record, written from docs/audit-format.md alone.
verify.py FOLDER...  prints a line each: exit code, first broken sequence, offset, file."""
import hashlib, os, re, struct, sys
try:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:  # without Ed25519 it still proves the chain, the tree and the layout
    Ed25519PublicKey = None

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def need(ok):
    if not ok: raise ValueError

def check_signature(key, sig, message):
    if Ed25519PublicKey:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(sig, message)
        except Exception:
            raise ValueError

class Log:
    id, chain, tree, epoch, signer, number, first = None, b"", [], 0, b"", 0, 0

    def segment(self, seq, body):
        log_id, number, prev, epoch, signer, size = struct.unpack(">32sI32sQ32sQ", body[:116])
        tree = [body[i:i + 32] for i in range(116, len(body), 32)]
        need(len(body) == 116 + 32 * bin(size).count("1") and size == seq - 1 and number > 0)
        if self.id is None:
            need(seq > 1 or (prev, epoch, number) == (sha(b"chat/v1 genesis\0", log_id), 0, 1))
            self.id, self.chain, self.epoch, self.signer, self.tree, self.first = log_id, prev, epoch, signer, tree, seq
        else:
            need((log_id, number, prev, epoch, signer, tree) ==
                 (self.id, self.number + 1, self.chain, self.epoch, self.signer, self.tree))
        self.number, self.count, self.epoch_here = number, 0, False

    def record(self, kind, flags, seq, body):
        if kind == 2:
            epoch, kem, kdf, aead, n = struct.unpack(">QHHHB", body[:15])
            at = 15
            for _ in range(n): at += 10 + struct.unpack(">H", body[at + 8:at + 10])[0]
            need(n > 1 and len(body) == at + 128 and epoch == self.epoch + 1)
            need(kem in (0x647A, 0x20) and (kdf, aead) == (1, 2))
            check_signature(self.signer, body[-64:], b"chat/v1 epoch-sig\0" + self.id + struct.pack(">Q", seq) + self.chain + sha(body[:-64]))
            self.epoch, self.signer, self.epoch_here = epoch, body[-96:-64], True
        elif kind == 3:
            need(self.epoch_here and len(body) > 28 + (42 if flags & 2 else 0))
        elif kind == 5:
            need(len(body) == 49 and not self.epoch_here and body[40] == 1 and body[41:] == struct.pack(">Q", seq - 1 - self.count))

    def frame(self, data, off, seq):
        magic, version, kind, flags, size, got = struct.unpack(">BBBBIQ", data[off:off + 16])
        need((magic, version, got) == (0xA7, 1, seq) and 1 <= kind <= 7 and 1 <= size <= 1 << 24)
        need(not flags & ~3 and (flags & 2 == 0 or kind == 3) and (kind == 1) == (off == 0))
        raw, chain = data[off:off + 16 + size], data[off + 16 + size:off + 48 + size]
        prev = raw[52:84] if kind == 1 and self.id is None else self.chain
        need(len(chain) == 32 and sha(b"chat/v1 record\0\0", prev, raw) == chain)
        self.segment(seq, raw[16:]) if kind == 1 else self.record(kind, flags, seq, raw[16:])
        node, n = sha(b"\0", chain), seq - 1  # RFC 6962: the leaves are the chain values
        while n & 1:
            node, n = sha(b"\1", self.tree.pop(), node), n >> 1
        self.tree, self.chain, self.count = self.tree + [node], chain, self.count + 1
        return off + 48 + size, flags & 1

def verify(folder):
    names = sorted(n for n in os.listdir(folder) if re.fullmatch(r"seg-\d{20}\.alog", n) and int(n[4:24]))
    log, seq, off, name = Log(), int(names[0][4:24]) if names else 0, 0, "-"
    try:
        for name in names:
            data, off, ended = open(os.path.join(folder, name), "rb").read(), 0, 0
            need(int(name[4:24]) == seq)
            while off < len(data) and data[off]:
                (off, ended), seq = log.frame(data, off, seq), seq + 1
            need(ended and not data[off:].strip(b"\0") and (name == names[-1] or off == len(data)))
    except (ValueError, struct.error):
        return f"1 {seq} {off} {name}"
    return "2 0 0 -" if not names else "0 0 0 -" if log.first == 1 else f"1 1 0 {names[0]}"

print(*map(verify, sys.argv[1:]), sep="\n")
