"""Our metadata codecs against what Apache BookKeeper wrote into ZooKeeper and next to its files (tests/golden/java)."""

import json
from pathlib import Path

import pytest

from bookie.metadata.bookies.service_info import BookieServiceInfo, bookie_endpoint, parse_service_info
from bookie.metadata.records.ledger_codec import parse_ledger, serialize_ledger
from bookie.metadata.records.ledger_metadata import DigestType, LedgerState
from bookie.metadata.zookeeper.layout import Layout, parse_layout
from bookie.storage.cookies import make_cookie, parse_cookie

GOLDEN = Path(__file__).parent / "java"
FACTS = json.loads((GOLDEN / "facts.json").read_text())
LEDGERS = {
    # state, last entry, length, digest, password, custom metadata, version
    "open": (LedgerState.OPEN, -1, 0, DigestType.CRC32C, b"secret", {"application", "note"}, 3),
    "closed": (LedgerState.CLOSED, 2, 3000, DigestType.HMAC, b"", set(), 3),
    "closed_empty": (LedgerState.CLOSED, -1, 0, DigestType.CRC32, b"", set(), 3),
    "version_2": (LedgerState.OPEN, -1, 0, DigestType.DUMMY, b"secret", set(), 2),
    "version_1": (LedgerState.OPEN, -1, 0, None, b"", set(), 1),
}


def node(name: str) -> bytes:
    """Return a node's content in ZooKeeper."""
    return (GOLDEN / f"znode_{name}.bin").read_bytes()


@pytest.mark.parametrize("name", LEDGERS)
def test_ledger_metadata_is_read(name: str) -> None:
    """Versions 1 to 3 are read as the Java client wrote them, with its one bookie."""
    metadata = parse_ledger(FACTS["ledgers"][name], node(f"ledger_{name}"))
    state, last, length, digest, password, custom, version = LEDGERS[name]
    assert (metadata.state, metadata.last_entry, metadata.length) == (state, last, length)
    assert (metadata.digest_type, metadata.password, set(metadata.custom)) == (digest, password, custom)
    assert metadata.format_version == version
    assert [(segment.first_entry, segment.bookies) for segment in metadata.segments] == [(0, (FACTS["bookie"],))]
    assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == (1, 1, 1)


@pytest.mark.parametrize("name", [name for name, facts in LEDGERS.items() if len(facts[5]) < 2])
def test_ledger_metadata_is_written_alike(name: str) -> None:
    """Reading and writing again gives the same bytes; only the order of custom metadata is not fixed."""
    data = node(f"ledger_{name}")
    assert serialize_ledger(parse_ledger(FACTS["ledgers"][name], data)) == data


def test_layout_and_service_info() -> None:
    """LAYOUT and the registration of a bookie are read and written, byte for byte."""
    assert parse_layout(node("LAYOUT")) == Layout("hierarchical", 1)
    assert Layout().to_bytes() == node("LAYOUT")
    host, _, port = FACTS["bookie"].rpartition(":")
    info = BookieServiceInfo((bookie_endpoint(host, int(port)),))
    assert parse_service_info(FACTS["bookie"], node("service_info")) == info
    assert info.to_bytes() == node("service_info")


def test_the_cookie() -> None:
    """VERSION and the cookie's node have the same text, which we read, and write byte for byte."""
    text = (GOLDEN / "VERSION.bin").read_bytes()
    assert text == node("cookie")
    cookie = make_cookie(
        FACTS["bookie"],
        journals=[Path(FACTS["journal_directory"])],
        ledgers=[Path(FACTS["ledger_directory"])],
        instance_id=node("INSTANCEID").decode(),
    )
    assert cookie.to_bytes() == text
    assert parse_cookie(text, "VERSION") == cookie
