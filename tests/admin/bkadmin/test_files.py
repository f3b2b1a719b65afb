"""bkadmin on the files of a real bookie that was stopped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bookie.client import Channel, Digest
from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.bookies import BookieProcess

LEDGER, ENTRIES = 5, 40
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def stopped(bookies: Callable[..., list[BookieProcess]], monkeypatch: pytest.MonkeyPatch) -> BookieProcess:
    """A stopped bookie with a ledger of some entries, all checkpointed, which bkadmin finds through the environment."""
    (bookie,) = bookies(1)
    digest = Digest.of()
    with Channel.connect(*bookie.address) as channel:
        for entry in range(ENTRIES):
            channel.add(LEDGER, entry, b"p" * entry, digest=digest, lac=entry - 1, length=0)
        channel.fence(LEDGER, digest.master_key)
    assert bookie.stop() == 0
    monkeypatch.setenv("BOOKIE_CONF", str(bookie.conf))
    return bookie


def test_entries_from_index_log_and_journal(stopped: BookieProcess, bkadmin: BkAdmin) -> None:
    """Index, entry log and journal show the same entries; the last mark is in an existing journal file."""
    known = bkadmin("ledger", LEDGER, "-o", "json").json
    assert [row["entry"] for row in known["entries"]] == list(range(ENTRIES))
    assert (known["count"], known["fenced"]) == (ENTRIES, True)
    places = {(row["entry"], row["offset"], row["bytes"]) for row in known["entries"]}
    log = known["entries"][0]["log"]
    read = bkadmin("readlog", log, "-l", LEDGER, "-o", "json").json
    assert {(row["entry"], row["offset"], row["bytes"]) for row in read["records"]} == places
    one = bkadmin("readlog", log, "-l", LEDGER, "-e", 3, "-o", "json").json["records"]
    assert [row["entry"] for row in one] == [3]
    shares = bkadmin("readlogmetadata", f"{log}.log", "-o", "json").json["ledgers"]
    assert [(row["ledger"], row["entries"]) for row in shares] == [(LEDGER, ENTRIES)]
    files = bkadmin("listfilesondisc", "-txn", "-o", "json").json["files"]
    assert files
    kinds: list[str] = []
    for file in files:
        found = bkadmin("readjournal", file["path"], "-l", LEDGER, "-o", "json").json
        kinds += [row["kind"] for row in found["records"]]
    assert (kinds.count("entry"), kinds.count("fence"), "master key" in kinds) == (ENTRIES, 1, True)
    marks = bkadmin("lastmark", "-o", "json").json["marks"]
    assert any(mark["counts"] and any(mark["file"] in file["path"] for file in files) for mark in marks)
    assert bkadmin("ledger", 99).code == 1


def test_what_is_not_well_is_found_and_mended(stopped: BookieProcess, bkadmin: BkAdmin) -> None:
    """The exit code is 0 for an intact bookie and 3 without its index, which is rebuilt; a damaged log is named."""
    assert bkadmin("localconsistencycheck").code == 0
    (index,) = stopped.ledgers.glob("current/locations.lmdb/data.mdb")
    with index.open("r+b") as file:
        file.write(b"\xff" * 8192)
    broken = bkadmin("localconsistencycheck", "-o", "json")
    assert (broken.code, broken.json["not_sound"]) == (3, 1)
    refused = bkadmin("rebuild-db-ledger-locations-index")
    assert (refused.code, refused.out) == (1, "")  # nobody can answer the question
    would = bkadmin("rebuild-db-ledger-locations-index", "--dry-run")
    assert (would.code, would.out) == (0, f"would rebuild the index of {stopped.ledgers}\n")
    assert bkadmin("rebuild-db-ledger-locations-index", "--yes").code == 1  # nothing can be taken over
    built = bkadmin("rebuild-db-ledgers-index", "--journals-only", "--yes", "-o", "json")
    assert built.code == 0, built.err
    assert [(row["entries"], row["without_key"]) for row in built.json["indexes"]] == [(ENTRIES, [])]
    assert bkadmin("localconsistencycheck").code == 0
    again = bkadmin("rebuild-db-ledger-locations-index", "--yes", "-o", "json")
    assert [row["entries"] for row in again.json["indexes"]] == [ENTRIES]
    assert bkadmin("ledger", LEDGER, "--meta", "-o", "json").json["fenced"]
    (log,) = [path for path in stopped.ledgers.glob("current/*.log") if path.stat().st_size > 2048]
    with log.open("r+b") as file:
        file.seek(1024)
        file.write(b"\xff" * 64)
    bad = bkadmin("localconsistencycheck", "-o", "json")
    (wrong,) = [
        row for row in bad.json["files"] if not row["sound"]
    ]  # an open log may end in a torn record, but the index must not point there
    assert (bad.code, wrong["path"]) == (3, str(index.parent))
    assert f"ledger {LEDGER}" in wrong["problem"]


def test_an_index_that_lacks_a_log_is_one_in_part(stopped: BookieProcess, bkadmin: BkAdmin) -> None:
    """An unreadable log stops a rebuild; with --skip-unreadable it is listed, and the exit code is 3."""
    (log,) = [path for path in stopped.ledgers.glob("current/*.log") if path.stat().st_size > 2048]
    with log.open("r+b") as file:
        file.write(b"\xff" * 1024)
    for command in (("rebuild-db-ledger-locations-index",), ("rebuild-db-ledgers-index", "--journals-only")):
        refused = bkadmin(*command, "--yes")
        assert (refused.code, "continue without it (--skip-unreadable)" in refused.err) == (1, True)
        part = bkadmin(*command, "--yes", "--skip-unreadable", "-o", "json")
        assert part.code == 3, part.err
        assert [row["skipped"] for row in part.json["indexes"]] == [[str(log)]]


def test_samples_are_printed_as_they_are(bkadmin: BkAdmin, tmp_path: Path) -> None:
    """Every file of conf/ is listed and printed, and a wrong name gets the right ones."""
    conf = ROOT / "conf"
    names = [row["name"] for row in bkadmin("samples", "-o", "json").json["samples"]]
    assert names == sorted(path.relative_to(conf).as_posix() for path in conf.rglob("*") if path.is_file())
    for name in names:
        assert bkadmin("samples", name).out == (conf / name).read_text()
    wrong = bkadmin("samples", "bookie.cfg")
    assert wrong.code == 1
    assert "bk.conf" in wrong.err
