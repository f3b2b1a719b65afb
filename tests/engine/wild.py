"""Frames that no sane client sends: extreme ids, sizes, keys and flags, unknown operations, and torn or endless ones.

They must neither harm the bookie nor the ledgers of other peers, which they only read.
"""

import random
import struct

from bookie.pb import wire_pb2 as pb
from tests.reference import wire_v2 as v2
from tests.reference.wire_v3_answers import framed

__all__ = ["wild_frame"]

MOST = (1 << 63) - 1
NUMBERS = (0, 1, -1, -2, 1 << 31, (1 << 31) - 1, 1 << 32, MOST - 1, MOST, -MOST - 1)
COUNTS = (0, 1, -1, 1000, (1 << 31) - 1, -(1 << 31))
PRIVATE = 5000
"""Ledgers from here on belong to nobody else."""


def wild_frame(rng: random.Random, ledgers: tuple[int, ...]) -> bytes:
    """Return bytes for a bookie that has these ledgers of others."""
    return rng.choice((_read, _batch, _write, _version_3, _version_3, _torn, _noise))(rng, ledgers)


def _own(rng: random.Random, ledgers: tuple[int, ...]) -> int:
    """Return a ledger that is none of the others'."""
    ledger = rng.choice(NUMBERS) if rng.random() < 0.5 else PRIVATE + rng.randrange(5)
    return PRIVATE if ledger in ledgers else ledger


def _any(rng: random.Random, ledgers: tuple[int, ...]) -> int:
    return rng.choice(ledgers) if rng.random() < 0.5 else rng.choice(NUMBERS)


def _key(rng: random.Random) -> bytes:
    return rng.choice((bytes(20), b"\xff" * 20, rng.randbytes(20)))


def _read(rng: random.Random, ledgers: tuple[int, ...]) -> bytes:
    fence = rng.random() < 0.3
    ledger = _own(rng, ledgers) if fence else _any(rng, ledgers)
    flags = v2.FENCE if fence else rng.choice((0, 0, 0xFFFC))
    return v2.encode_request(v2.Request(v2.READ, 2, flags, ledger, rng.choice(NUMBERS), key=_key(rng)))


def _batch(rng: random.Random, ledgers: tuple[int, ...]) -> bytes:
    ids = _any(rng, ledgers), rng.choice(NUMBERS), rng.choice(NUMBERS)
    return v2.encode_request(v2.Request(v2.BATCH_READ, 2, 0, *ids, rng.choice(COUNTS), rng.choice(NUMBERS)))


def _write(rng: random.Random, ledgers: tuple[int, ...]) -> bytes:
    ids = struct.pack(">qqqq", _own(rng, ledgers), rng.choice(NUMBERS), rng.choice(NUMBERS), rng.choice(NUMBERS))
    body = ids[: rng.choice((0, 8, 16, 24, 32, 32, 32))] + rng.randbytes(rng.choice((0, 1, 100)))
    return v2.encode_request(v2.Request(v2.ADD, 2, rng.choice((0, 1, 2, 4, 0xFFFF)), key=_key(rng), body=body))


def _version_3(rng: random.Random, ledgers: tuple[int, ...]) -> bytes:
    own, entry = _own(rng, ledgers), rng.choice(NUMBERS)
    operation = pb.OperationType.Name(rng.choice(sorted(pb.OperationType.values())))
    header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=operation, txnId=rng.choice(NUMBERS) & MOST)
    request = pb.Request(header=header)
    kind = rng.randrange(7)
    if kind == 0:
        request.readRequest.CopyFrom(pb.ReadRequest(ledgerId=own, entryId=entry, timeOut=rng.choice(NUMBERS)))
        request.readRequest.flag = rng.choice((pb.ReadRequest.FENCE_LEDGER, pb.ReadRequest.ENTRY_PIGGYBACK))
        request.readRequest.masterKey = rng.randbytes(rng.choice((0, 19, 20, 1000)))
        request.readRequest.previousLAC = rng.choice(NUMBERS)
    elif kind == 1:
        key, body = rng.randbytes(rng.choice((0, 19, 20, 21))), rng.randbytes(rng.choice((0, 10, 32, 100)))
        request.addRequest.CopyFrom(pb.AddRequest(ledgerId=own, entryId=entry, masterKey=key, body=body))
        request.addRequest.writeFlags = rng.choice(COUNTS)
    elif kind == 2:
        request.writeLacRequest.CopyFrom(pb.WriteLacRequest(ledgerId=own, lac=entry, masterKey=_key(rng), body=b"x"))
    elif kind == 3:
        request.readLacRequest.CopyFrom(pb.ReadLacRequest(ledgerId=_any(rng, ledgers)))
    elif kind == 4:
        request.forceLedgerRequest.CopyFrom(pb.ForceLedgerRequest(ledgerId=_any(rng, ledgers)))
    elif kind == 5:
        request.getListOfEntriesOfLedgerRequest.ledgerId = _any(rng, ledgers)
    return framed(request.SerializeToString())


def _torn(rng: random.Random, ledgers: tuple[int, ...]) -> bytes:
    """Return a frame with some byte changed, or its end missing."""
    frame = bytearray(rng.choice((_read, _batch, _write, _version_3))(rng, ledgers))
    if rng.random() < 0.5:
        return bytes(frame[: rng.randrange(len(frame))])
    frame[rng.randrange(min(12, len(frame)))] = rng.randrange(256)  # of the length, the operation, the first field
    return bytes(frame)


def _noise(rng: random.Random, _ledgers: tuple[int, ...]) -> bytes:
    size = rng.choice((0, 1, 100, (1 << 31) - 1, (1 << 32) - 1))
    return struct.pack(">I", size) + rng.randbytes(rng.choice((0, 4, 200)))
