"""Our scanners read the journal, entry logs and mark that an Apache BookKeeper bookie wrote (tests/golden/java)."""

import json
import struct
from pathlib import Path

import numpy as np

from bookie._fast.entrylog.reader import EntryLogReader
from bookie._fast.entrylog.scan import scan_entry_log
from bookie._fast.journal.reader import scan_journal
from tests.interop.payload import payload

GOLDEN = Path(__file__).parent / "java"
FACTS = json.loads((GOLDEN / "facts.json").read_text())
FRAMES = json.loads((GOLDEN / "frames.json").read_text())
META_KEY, META_FENCE, META_LAC = -0x1000, -0x2000, -0x8000
(JOURNAL,) = GOLDEN.glob("*.txn")
# The records in order: ledger and entry, or the kind of a record about the ledger.
WRITTEN = [
    (7, META_KEY),
    *[(7, entry) for entry in (0, 1, 2, 3, 4, 5, 8, 9)],
    (7, META_FENCE),
    (7, 10),
    (8, META_FENCE),
    (7, META_LAC),
]


def adds() -> dict[tuple[int, int], bytes]:
    """Return the entries that the Java client sent, by ledger and entry id; those of the closed ledger by the rule."""
    sent = {}
    for name, exchange in FRAMES.items():
        if name.startswith("add_") and bytes.fromhex(exchange["answer"])[8:12] == bytes(4):
            entry = bytes.fromhex(exchange["request"])[28:]
            sent[struct.unpack(">qq", entry[:16])] = entry
    return sent


def test_the_journal() -> None:
    """Every record is read in order, with its bytes; Java's groups have no checksum, and none is missed."""
    data = JOURNAL.read_bytes()
    rows = scan_journal(JOURNAL, int(JOURNAL.stem, 16))
    assert (rows.version, rows.torn, rows.damaged, rows.groups) == (6, False, False, 0)
    found = list(zip(rows.ledger.tolist(), rows.kind.tolist(), strict=True))
    assert found[: len(WRITTEN)] == WRITTEN
    closed = FACTS["ledgers"]["closed"]
    assert found[len(WRITTEN) :] == [(closed, META_KEY), (closed, 0), (closed, 1), (closed, 2)]
    sent = adds()
    for place, size, named in zip(rows.position.tolist(), rows.length.tolist(), found, strict=True):
        record = data[place + 4 : place + 4 + size]
        assert data[place : place + 4] == size.to_bytes(4, "big")
        if named in sent:
            assert record == sent[named]
        elif named[1] >= 0:
            assert record[52:] == payload(closed, named[1], 1000)  # after the header and an HMAC digest


def test_the_entry_logs() -> None:
    """All entries of closed logs and of the last, open one are found, and read from where they were found."""
    reader = EntryLogReader(GOLDEN)
    sent, closed = adds(), FACTS["ledgers"]["closed"]
    found = {}
    for log in sorted(GOLDEN.glob("*.log")):
        for chunk in scan_entry_log(log):
            assert not chunk.torn
            assert np.all(chunk.ledger >= 0), "special records are skipped"
            for ledger, entry, offset, length in zip(*[column.tolist() for column in chunk[:4]], strict=True):
                found[ledger, entry] = reader.read(int(log.stem, 16), offset, 4 + length)[4:]
    assert {name: found[name] for name in sent} == sent
    assert found.keys() - sent.keys() == {(closed, 0), (closed, 1), (closed, 2)}
    for entry in range(3):
        assert found[closed, entry][52:] == payload(closed, entry, 1000)


def test_the_mark() -> None:
    """lastMark after a clean stop has the journal's id, and the end of its content."""
    journal, end = struct.unpack(">qq", (GOLDEN / "lastMark.bin").read_bytes())
    assert journal == int(JOURNAL.stem, 16)
    assert end == scan_journal(JOURNAL, journal).end
    assert int((GOLDEN / "lastId.bin").read_text(), 16) >= max(int(log.stem, 16) for log in GOLDEN.glob("*.log"))
