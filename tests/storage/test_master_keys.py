"""Master keys in the stores (`store.ledger_writes`): which ones are accepted, who may replace an empty one, and what
a start does with them.
"""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.base.file import Files
from bookie._fast.index.view import Index
from bookie._fast.journal.commit import JournalCommitter
from bookie._fast.store.direct import JournalWriter, Refused
from tests.hostile.peer import KEY, entry_of
from tests.storage.opened import MIB, STORAGE, Opened

OTHER = b"o" * 20
ZEROS = bytes(20)
SIZES = [1, 2, 19, 21, 40, 255, 65535, 65536, 1 << 20]
CANDIDATES = [b"", ZEROS, KEY, OTHER]


def refusal(call: Callable[..., object], *given: object, **more: object) -> str:
    """Return the status with which a call is refused; empty if it is not."""
    try:
        call(*given, **more)
    except Refused as error:
        return error.status
    return ""


@pytest.mark.parametrize("size", SIZES)
def test_a_key_of_another_size_never_becomes_a_ledgers(size: int, tmp_path: Path) -> None:
    """No add, recovery add, fence or explicit LAC sets a key of another size, for a new ledger or one without a key."""
    opened = Opened(tmp_path)
    direct, key = opened.direct, (bytes(range(1, 256)) * (size // 255 + 1))[:size]
    direct.add(entry_of(2, 0), b"")
    for ledger in (1, 2):
        packet = struct.pack(">qq", ledger, 0)
        assert refusal(direct.add, entry_of(ledger, 0), key) == "BAD_REQUEST"
        assert refusal(direct.add, entry_of(ledger, 0), key, recovery=True) == "BAD_REQUEST"
        assert refusal(direct.fence, ledger, key) == "BAD_REQUEST"
        assert refusal(direct.write_lac, packet, key) == "BAD_REQUEST"
    assert direct.ledger(1) is None
    assert refusal(direct.write_close, 2, key) == "BAD_REQUEST"
    direct.add(entry_of(2, 1), KEY)
    assert refusal(direct.add, entry_of(2, 2), key) == "UNAUTHORIZED"
    opened.stop()


@pytest.mark.parametrize("size", [1, 19, 21, 65535])
def test_a_key_of_older_data_stays(size: int, tmp_path: Path) -> None:
    """A ledger with an older key is read, and only its owner, who has that key, can write to it."""
    key = b"k" * size
    opened = Opened(tmp_path)
    opened.direct.add(entry_of(1, 0), KEY)
    opened.stop()
    index = Index.open(tmp_path / "ledgers-0" / "current" / "locations.lmdb", STORAGE["index_map_bytes"])
    index.begin()
    index.put_ledger(1, key)
    index.commit()
    index.close()
    opened = Opened(tmp_path)
    held = opened.direct.read(1, 0)
    assert held.entries() == [entry_of(1, 0)]
    held.release()
    opened.direct.add(entry_of(1, 1), key)
    assert refusal(opened.direct.add, entry_of(1, 2), KEY) == "UNAUTHORIZED"
    assert refusal(opened.direct.add, entry_of(1, 2), key[1:]) == "UNAUTHORIZED"
    assert opened.direct.commit()
    opened.crash()
    opened = Opened(tmp_path)
    state = opened.direct.ledger(1)
    assert state is not None
    assert state.key == key
    opened.stop()


def test_the_word_that_nothing_follows_takes_no_key(tmp_path: Path) -> None:
    """A write close, and the one that a refused add implies, leave key, journal and index unchanged."""
    opened = Opened(tmp_path)
    direct = opened.direct
    direct.add(entry_of(1, 0), b"")
    assert direct.commit()
    opened.checkpoint()
    before = opened.storage.stats()["journal_bytes"]
    direct.write_close(1, KEY)
    direct.write_close(77, KEY)
    assert direct.commit()
    assert opened.storage.stats()["journal_bytes"] == before
    state = direct.ledger(1)
    assert state is not None
    assert (state.key, state.dirty) == (b"", False)
    assert direct.ledger(77) is None
    direct.add(entry_of(1, 1), OTHER)
    assert refusal(direct.write_close, 1, KEY) == "UNAUTHORIZED"
    opened.stop()


@pytest.mark.thorough
@given(st.lists(st.tuples(st.sampled_from(CANDIDATES), st.booleans(), st.booleans()), min_size=1, max_size=8))
def test_a_start_takes_what_admission_took(
    tmp_path_factory: pytest.TempPathFactory, scenario: list[tuple[bytes, bool, bool]]
) -> None:
    """With any order of keys, index commits and kills between them, no start is refused and the key stays."""
    root = tmp_path_factory.mktemp("keys")
    opened = Opened(root)
    known = b""
    for entry, (key, commits, dies) in enumerate(scenario):
        taken = refusal(opened.direct.add, entry_of(1, entry), key) == ""
        assert taken == (entry == 0 or not known.strip(b"\0") or key == known)
        if taken:
            known = key
        assert opened.direct.commit()
        if commits:
            opened.checkpoints.flush_stores()  # commits the index, but not the mark
        if dies:
            opened.crash()
            opened = Opened(root)
        state = opened.direct.ledger(1)
        assert state is not None
        assert state.key.strip(b"\0") == known.strip(b"\0")
    opened.crash()


@pytest.mark.parametrize("size", [3, 33])
def test_a_replay_takes_an_older_key_of_another_size(size: int, tmp_path: Path) -> None:
    """It was acknowledged once: it replaces an empty key, and is accepted for a ledger that the index does not know."""
    opened = Opened(tmp_path)
    opened.direct.add(entry_of(1, 0), b"")
    assert opened.direct.commit()
    opened.crash()
    journals = sorted((tmp_path / "journal-0" / "current").glob("*.txn"))
    committer = JournalCommitter(
        str(tmp_path / "journal-0" / "current"), Files(), buffer_bytes=2 * MIB, alignment_bytes=4096,
        file_bytes_max=2 * MIB, prealloc_bytes=MIB, backups_max=5, group_wait_ms=0, group_bytes=0, group_entries=0,
        flush_when_empty=True, sync_data=True, reuse_files=False,
    )  # fmt: skip
    ids = [int(path.stem, 16) for path in journals]
    committer.open(ids[-1] + 1, ids)
    writer = JournalWriter(committer)
    for ledger in (1, 2):
        assert writer.append_meta(ledger, -0x1000, b"k" * size)
    assert writer.append(entry_of(2, 0))
    assert writer.commit()
    writer.close()
    committer.close()
    opened = Opened(tmp_path)
    for ledger in (1, 2):
        state = opened.direct.ledger(ledger)
        assert state is not None
        assert state.key == b"k" * size
    opened.stop()


@pytest.mark.parametrize(("first", "then"), [(b"", ZEROS), (ZEROS, b"")])
def test_a_key_of_zeros_takes_no_place(first: bytes, then: bytes, tmp_path: Path) -> None:
    """Neither key names an owner: the ledger's key is the same before and after a kill."""
    opened = Opened(tmp_path)
    opened.direct.add(entry_of(1, 0), first)
    opened.direct.write_lac(struct.pack(">qq", 1, 0), then)
    assert opened.direct.commit()
    opened.crash()
    opened = Opened(tmp_path)
    state = opened.direct.ledger(1)
    assert state is not None
    assert state.key == first
    opened.direct.add(entry_of(1, 1), KEY)
    assert refusal(opened.direct.add, entry_of(1, 2), OTHER) == "UNAUTHORIZED"
    opened.stop()
