"""The disks of a Java bookie, as the bookie of a world finds them before its first start and takes them over.

What is in the entry logs and journals was acknowledged by the Java bookie, so it is in the history of the world.
"""

import random
import struct
from pathlib import Path

from tests.engine.entries import KEY, fingerprint, stored
from tests.engine.events import Invocation, Recorder
from tests.engine.plan import Plan
from tests.engine.runtime import Runtime
from tests.engine.wire import LAST, OK
from tests.reference import journal
from tests.storage.java_disks import index_file, put_index_file, put_logs

__all__ = ["leave_disks"]

RUN = 250
"""The number of the Java bookie's run, in the numbers of requests."""
JOURNAL = 0x20
BLOCK = 4096
ENTRIES_MAX = 40
LOGS_MAX = 3


def leave_disks(runtime: Runtime, plan: Plan, root: Path) -> None:
    """Write entry logs, index files, a journal and its mark below `root`, and record what was acknowledged."""
    rng = random.Random(f"java-{plan.seed}")
    recorder = Recorder(runtime, RUN)
    current = root / "ledgers-0" / "current"
    logs: dict[int, list[bytes]] = {number: [] for number in range(rng.randrange(1, LOGS_MAX + 1))}
    before, after = list[bytes](), list[bytes]()  # records of the journal, on both sides of its mark
    for ledger in plan.ledgers:
        entries = [
            stored(ledger, entry, entry - 1, plan.payload_bytes_max) for entry in range(rng.randrange(1, ENTRIES_MAX))
        ]
        flushed = rng.randrange(len(entries) + 1)
        for data in entries[:flushed]:
            logs[rng.randrange(len(logs))].append(data)
            before.append(_entry(data))
        after += map(_entry, entries[flushed:])
        _acknowledged(recorder, ledger, entries)
        fenced = rng.choice(("", "", "index", "before", "after"))
        put_index_file(current, ledger, index_file(key=KEY, fenced=fenced == "index"))
        if fenced:
            (before if fenced == "before" else after).append(journal.record(ledger, journal.FENCE))
            _fenced(recorder, ledger, entries)
    put_logs(current, {number: found for number, found in logs.items() if found}, closed=rng.random() < 0.7)
    _put_journal(root, b"".join(before), b"".join(after))


def _entry(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _put_journal(root: Path, before: bytes, after: bytes) -> None:
    text = journal.header(grouped=False) + before
    text += journal.padding(len(text))
    (root / "ledgers-0" / "current" / "lastMark").write_bytes(struct.pack(">qq", JOURNAL, len(text)))
    text += after
    text += journal.padding(len(text))
    place = root / "journal-0" / "current"
    place.mkdir(parents=True)
    (place / f"{JOURNAL:x}.txn").write_bytes(text.ljust(-(-len(text) // BLOCK) * BLOCK, b"\0"))


def _acknowledged(recorder: Recorder, ledger: int, entries: list[bytes]) -> None:
    for entry, data in enumerate(entries):
        body = fingerprint(data)
        number = recorder.invoke(1, "add", ledger, entry, (body,))
        recorder.answer(Invocation(number, 1, "add", ledger, entry, body, 0), OK, entry, (body,))


def _fenced(recorder: Recorder, ledger: int, entries: list[bytes]) -> None:
    last = len(entries) - 1
    number = recorder.invoke(1, "fence", ledger, LAST)
    answered = Invocation(number, 1, "fence", ledger, LAST, b"", 0)
    recorder.answer(answered, OK, last, (fingerprint(entries[-1]),), lac=last - 1)
