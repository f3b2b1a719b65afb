"""The repair of a location index whose disk has lost or misplaced a write (index.salvage, index.lmdb_tree,
index.location; B6, B7).
"""

import struct
from pathlib import Path

import pytest

from tests.crash.flips.index_pages import stretches
from tests.storage.opened import Opened
from tests.storage.test_index_repair import (
    ENTRIES,
    LEAF,
    LEDGERS,
    PAGE,
    a_run,
    flip,
    index_file,
    newest_meta,
    pages,
    readable,
    repaired,
    restarted,
    stored,
    tables,
)


def overwrite(one: Opened, offset: int, data: bytes) -> None:
    """Change bytes of the index under the open store."""
    with index_file(one).open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_b7_a_page_at_the_place_of_another_leaves_all_ledgers_in_doubt(tmp_path: Path) -> None:
    """A sound page at the wrong place was written there by mistake, so its own place has an older page, which nothing
    tells from the right one: what is missing may be of any ledger.
    """
    one = stored(tmp_path)
    raw = index_file(one).read_bytes()
    leaves = [page for page in pages(raw, tables(raw)["locations"]) if raw[page * PAGE + 10] == LEAF]
    overwrite(one, leaves[0] * PAGE, raw[leaves[1] * PAGE : (leaves[1] + 1) * PAGE])
    assert readable(one) < LEDGERS * ENTRIES
    one.storage.repairs[0].salvage()
    assert one.storage.stats()["doubtful_ledgers"] == LEDGERS
    repaired(one)
    assert one.storage.stats()["doubtful_ledgers"] == 0
    assert readable(one) == LEDGERS * ENTRIES
    one.stop()


def test_b6_readers_begin_while_the_meta_pages_cannot_be_used(tmp_path: Path) -> None:
    """A thread that begins to read a damaged index, such as one of garbage collection, waits for the repair, and its
    first look-up asks for it.
    """
    one = stored(tmp_path)
    raw = index_file(one).read_bytes()
    overwrite(one, newest_meta(raw) * PAGE + 136, struct.pack("<Q", 1 << 40))  # the last page of the file
    collector = one.storage.collectors()[0]
    with pytest.raises(OSError, match="the location index failed"):
        collector.live_bytes()
    assert one.storage.stats()["index_damage"] > 0
    repaired(one)
    assert readable(one) == LEDGERS * ENTRIES
    collector.live_bytes()
    one.stop()


def test_b7_doubts_that_cannot_be_read_are_doubts_of_all_ledgers(tmp_path: Path) -> None:
    """A repair was not finished, and the table that says for which ledgers decays while the bookie is down."""
    one = stored(tmp_path)
    flip(one, a_run(one), 3)
    readable(one)
    one.storage.repairs[0].salvage()
    assert 0 < one.storage.stats()["doubtful_ledgers"] < LEDGERS
    leaf = max(each.end for each in stretches(index_file(one).read_bytes()) if each.part == "doubts leaf")
    overwrite(one, leaf - 8, bytes(8))
    again = restarted(one, tmp_path)
    assert again.storage.stats()["doubtful_ledgers"] == LEDGERS
    assert readable(again) < LEDGERS * ENTRIES
    repaired(again)
    assert readable(again) == LEDGERS * ENTRIES
    again.stop()
