"""Fuzz targets for the readers of files: hostile entry logs and journals.

The only allowed outcomes are an answer equal to the model's and the one error that says what the file is not. To
run one target alone:

    python -m tests.fuzz.storage_files entry_log [libFuzzer options] [corpus directory]
"""

import inspect
import os
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bookie._fast.entrylog.map import read_map
from bookie._fast.entrylog.scan import scan_entry_log
from bookie._fast.journal.reader import scan_journal
from bookie.storage.takeover.idx import parse_header
from tests.reference import entry_log as log_model
from tests.reference import journal as journal_model
from tests.reference.hexdump import golden
from tests.storage.java_disks import index_file

JOURNAL_ID = 0x18C3A7F2B40
LOG_HEADER_BYTES = 1024
JAVA = Path(__file__).parent.parent / "golden" / "java"


@contextmanager
def in_memory(data: bytes) -> Iterator[str]:
    """Return a path at which `data` can be opened without touching a disk."""
    fd = os.memfd_create("fuzz")
    try:
        os.write(fd, data)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def entry_log(data: bytes) -> None:
    """Scan `data` as an entry log, in one go and in chunks of two, and read its ledgers map."""
    try:
        expected = log_model.scan(data)
    except ValueError:
        expected = None
    for rows_max in (1 << 10, 2):
        with in_memory(data) as path:
            try:
                chunks = list(scan_entry_log(path, rows_max))
            except ValueError:
                assert expected is None
                continue
        assert expected is not None
        rows = [row for c in chunks for row in zip(*(column.tolist() for column in c[:4]), strict=True)]
        assert log_model.Found(rows, chunks[-1].end, chunks[-1].torn) == expected
    ledgers_map(data)


def ledgers_map(data: bytes) -> None:
    """Read the map of the same log. It may be believed only where it accounts for every byte before it, and must then
    hold what stands there.
    """
    with in_memory(data) as path:
        found = read_map(path)
    if found is None:
        return
    sizes = dict(zip(found.ledgers.tolist(), found.bytes.tolist(), strict=True))
    assert found.ledgers.tolist() == sorted(sizes)
    assert min(sizes) >= 0
    assert min(sizes.values()) > 0
    assert sum(sizes.values()) == int.from_bytes(data[8:16]) - LOG_HEADER_BYTES
    assert all(struct.pack(">qq", *pair) in data for pair in sizes.items())


def journal(data: bytes) -> None:
    """Scan `data` as a journal."""
    try:
        expected = journal_model.scan(data, JOURNAL_ID)
    except ValueError:
        expected = None
    with in_memory(data) as path:
        try:
            found = scan_journal(path, JOURNAL_ID)
        except ValueError:
            assert expected is None
            return
    rows = list(zip(*(column.tolist() for column in found[:4]), strict=True))
    assert expected == journal_model.Found(rows, found.end, found.groups, found.torn, found.damaged)


def index_header(data: bytes) -> None:
    """Parse `data` as the header of a Java bookie's .idx file, and check that what is found is what stands there."""
    try:
        found = parse_header(7, data)
    except ValueError:
        return
    version, state = data[4:8], 12 + len(found.key)
    assert found.fenced == bool(data[state + 3] & 1)
    parts = [b"BKLE", version, len(found.key).to_bytes(4), found.key, data[state : state + 4]]
    parts += [len(found.lac).to_bytes(4), found.lac] if int.from_bytes(version) else []
    assert data.startswith(b"".join(parts))


def entry_log_seeds() -> list[bytes]:
    """Return good files of both layouts, among them Java's."""
    entry = log_model.entry(7, 1, b"payload")
    return [
        golden("entry_log.hex"),
        log_model.build_direct([[entry], [entry, entry]], zeros=5000),
        log_model.build([entry], closed=False) + bytes(100),
        log_model.build([entry, log_model.entry(9, 0), entry], closed=True),
        *(path.read_bytes() for path in sorted(JAVA.glob("*.log"))),
    ]


def journal_seeds() -> list[bytes]:
    """Return our journals with closed groups and with a stale group behind them, and upstream's, in each version."""
    records = [journal_model.record(7, kind, b"payload") for kind in (journal_model.MASTER_KEY, 0, 1)]
    ours = journal_model.build(records, JOURNAL_ID)
    stale = journal_model.build([*records, records[0]], JOURNAL_ID - 1)
    old = [journal_model.header(version, grouped=False) + b"".join(records) for version in range(1, 7)]
    java = [path.read_bytes() for path in sorted(JAVA.glob("*.txn"))]
    return [golden("journal.hex"), golden("journal_closed.hex"), ours, ours + stale[len(ours) :], *old, *java]


def index_header_seeds() -> list[bytes]:
    """Return headers of both versions, with and without key, fence and explicit LAC."""
    return [
        index_file(key=key, fenced=fenced, lac=lac, version=version)
        for key in (b"", b"k" * 20)
        for fenced in (False, True)
        for lac, version in ((b"", 0), (b"", 1), (b"l" * 28, 1))
    ]


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "entry_log": (entry_log, entry_log_seeds),
    "journal": (journal, journal_seeds),
    "index_header": (index_header, index_header_seeds),
}


def main() -> None:
    """Fuzz one target until stopped. The model's branches guide the fuzzer, because it measures their coverage."""
    import atheris

    target, seeds = TARGETS[sys.argv.pop(1)]
    for seed in seeds():
        target(seed)
    for model in (log_model, journal_model):
        for name, function in inspect.getmembers(model, inspect.isfunction):
            setattr(model, name, atheris.instrument_func(function))
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
