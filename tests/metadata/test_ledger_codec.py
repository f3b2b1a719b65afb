"""Ledger metadata as bytes: the worked examples, all three versions in both directions, and every kind of damage."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.errors import MetadataSerializationError
from bookie.metadata.records.ledger_codec import parse_ledger, serialize_ledger
from bookie.metadata.records.ledger_metadata import DigestType, LedgerMetadata, LedgerState, Segment
from bookie.pb.data_formats_pb2 import LedgerMetadataFormat

EXAMPLE = LedgerMetadata(
    ensemble_size=3,
    write_quorum=2,
    ack_quorum=2,
    segments=(Segment(0, ("bk1:3181", "bk2:3181", "bk3:3181")),),
    digest_type=DigestType.CRC32C,
    password=b"secret",
    custom={"app": b"test"},
    token=42,
)
EXAMPLE_V3 = bytes.fromhex(
    "42 6f 6f 6b 69 65 4d 65 74 61 64 61 74 61 46 6f 72 6d 61 74 56 65 72 73 69 6f 6e 09 33 0a 50 08"
    "02 10 03 18 00 20 ff ff ff ff ff ff ff ff ff 01 28 01 32 20 0a 08 62 6b 31 3a 33 31 38 31 0a 08"
    "62 6b 32 3a 33 31 38 31 0a 08 62 6b 33 3a 33 31 38 31 10 00 38 03 42 06 73 65 63 72 65 74 48 02"
    "5a 0b 0a 03 61 70 70 12 04 74 65 73 74 60 2a"
)
EXAMPLE_V2 = b"""BookieMetadataFormatVersion\t2
quorumSize: 2
ensembleSize: 3
length: 0
lastEntryId: -1
state: OPEN
segment {
  ensembleMember: "bk1:3181"
  ensembleMember: "bk2:3181"
  ensembleMember: "bk3:3181"
  firstEntryId: 0
}
digestType: CRC32C
password: "secret"
ackQuorumSize: 2
customMetadata {
  key: "app"
  value: "test"
}
"""
HEADER_V1 = b"BookieMetadataFormatVersion\t1\n"

bookie_ids = st.text("abcdefghij0123456789.:-", min_size=1, max_size=20)


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerMetadata:
    """Any valid ledger of version 3."""
    ensemble = draw(st.integers(1, 5))
    write = draw(st.integers(1, ensemble))
    starts = sorted({0, *draw(st.lists(st.integers(1, 1 << 62), max_size=3))})
    members = st.lists(bookie_ids, min_size=ensemble, max_size=ensemble).map(tuple)
    state = draw(st.sampled_from(LedgerState))
    digest = draw(st.sampled_from([None, *DigestType]))
    closed = state is LedgerState.CLOSED
    return LedgerMetadata(
        ensemble_size=ensemble,
        write_quorum=write,
        ack_quorum=draw(st.integers(1, write)),
        segments=tuple(Segment(start, draw(members)) for start in starts),
        state=state,
        length=draw(st.integers(0, (1 << 63) - 1)) if closed else 0,
        last_entry=draw(st.integers(-1, (1 << 63) - 1)) if closed else -1,
        digest_type=digest,
        password=draw(st.binary(max_size=12)) if digest else b"",
        ctime_ms=draw(st.none() | st.integers(0, 1 << 45)),
        custom=draw(st.dictionaries(st.text(max_size=8), st.binary(max_size=8), max_size=3)),
        token=draw(st.integers(0, (1 << 63) - 1)),
    )


def test_the_binary_example() -> None:
    """The worked example of version 3 is written and parsed byte for byte."""
    assert serialize_ledger(EXAMPLE) == EXAMPLE_V3
    assert parse_ledger(1, EXAMPLE_V3) == EXAMPLE


def test_the_text_example() -> None:
    """The worked example of version 2 is written and parsed; it has no token, and a rewrite keeps the version."""
    text = replace(EXAMPLE, format_version=2, token=0)
    assert parse_ledger(1, EXAMPLE_V2) == text
    assert serialize_ledger(text) == EXAMPLE_V2


def test_text_in_other_spellings() -> None:
    """Comments, separators, one-line messages and octal escapes are parsed as the same text."""
    text = (
        b"BookieMetadataFormatVersion\t2\n# a comment\nquorumSize: 1, ensembleSize: 1; length: 5 lastEntryId: 0\n"
        b'state: CLOSED segment { ensembleMember: "a:1" firstEntryId: 0 }\n'
        b'digestType: HMAC password: "\\001\\377\\"" somethingNew: 4\n'
    )
    found = parse_ledger(1, text)
    assert found.password == b'\x01\xff"'
    assert (found.state, found.length, found.last_entry) == (LedgerState.CLOSED, 5, 0)
    assert found.ack_quorum == found.write_quorum == 1


@pytest.mark.parametrize(
    ("body", "state", "last_entry"),
    [
        (b"2\n3\n0\n0\ta:1\tb:1\tc:1\n7\ta:1\td:1\tc:1\n", LedgerState.OPEN, -1),
        (b"2\n3\n0\n0\ta:1\tb:1\tc:1\n7\ta:1\td:1\tc:1\n-102\tCLOSED", LedgerState.IN_RECOVERY, -1),
        (b"2\n3\n90\n0\ta:1\tb:1\tc:1\n7\ta:1\td:1\tc:1\n11\tCLOSED", LedgerState.CLOSED, 11),
    ],
)
def test_lines_of_version_1(body: bytes, state: LedgerState, last_entry: int) -> None:
    """The oldest version is parsed with its header and without it; the ack quorum is the write quorum."""
    for data in (HEADER_V1 + body, body):
        found = parse_ledger(1, data)
        assert (found.state, found.last_entry) == (state, last_entry)
        assert (found.write_quorum, found.ack_quorum, found.ensemble_size) == (2, 2, 3)
        assert found.segments == (Segment(0, ("a:1", "b:1", "c:1")), Segment(7, ("a:1", "d:1", "c:1")))
        assert found.digest_type is None
        assert parse_ledger(1, serialize_ledger(found)) == found


@given(ledgers())
def test_any_ledger_returns(metadata: LedgerMetadata) -> None:
    """Version 3 and version 2 (which has no token) return what was serialized."""
    assert parse_ledger(1, serialize_ledger(metadata)) == metadata
    text = replace(metadata, format_version=2, token=0)
    assert parse_ledger(1, serialize_ledger(text)) == text


@given(ledgers(), st.data())
def test_damage_is_named(metadata: LedgerMetadata, data: st.DataObject) -> None:
    """Cut or changed bytes give valid metadata or the one error, never another exception."""
    whole = bytearray(serialize_ledger(metadata))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        parsed, said = parse_ledger(77, cut), ""
    except MetadataSerializationError as error:
        parsed, said = None, str(error)
    assert parsed.problem() is None if parsed else "ledger 77" in said


def binary(**changes: object) -> bytes:
    """Return the example in version 3 with some protobuf fields changed; None clears one."""
    message = LedgerMetadataFormat.FromString(EXAMPLE_V3[31:])
    for name, value in changes.items():
        if value is None:
            message.ClearField(name)
        else:
            setattr(message, name, value)
    body = message.SerializePartialToString()
    return EXAMPLE_V3[:30] + bytes([len(body)]) + body


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "lines of version 1"),
        (b"BookieMetadataFormatVersion\tx\n", "first line"),
        (b"BookieMetadataFormatVersion\t4\n...", "version 4 is newer"),
        (EXAMPLE_V3[:-1], "79 bytes of 80"),
        (EXAMPLE_V3[:30], "length is cut"),
        (EXAMPLE_V3[:30] + b"\xff" * 9, "length is cut"),
        (EXAMPLE_V2[:44], "it lacks ensembleSize, length, state"),
        (EXAMPLE_V2[:40], "not protobuf text"),
        (binary(state=None), "it lacks state"),
        (binary(password=None), "only one of digestType and password"),
        (binary(quorumSize=4), "quorums must be"),
        (binary(ackQuorumSize=3), "quorums must be"),
        (binary(ensembleSize=4), "has 3 bookies, not 4"),
        (binary(segment=None), "no segment"),
        (binary(state=3, lastEntryId=None), "CLOSED without lastEntryId"),
        (binary(length=5), "state OPEN cannot have length 5"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, why: str) -> None:
    """Each violated rule is named, with the ledger."""
    with pytest.raises(MetadataSerializationError, match="ledger 12 ") as refusal:
        parse_ledger(12, data)
    assert why in str(refusal.value)


def test_an_absent_ack_quorum_is_the_write_quorum() -> None:
    """Metadata older than ack quorums have none, and the write quorum is used."""
    assert parse_ledger(1, binary(ackQuorumSize=None)).ack_quorum == 2


def test_the_password_is_not_shown() -> None:
    """B11: neither the text form of a ledger nor an error has its password."""
    assert "secret" not in repr(EXAMPLE)
    with pytest.raises(MetadataSerializationError) as refusal:
        serialize_ledger(replace(EXAMPLE, ack_quorum=9))
    assert "secret" not in str(refusal.value)


def test_entries_find_their_bookies() -> None:
    """Entry mod ensemble size is the first bookie of the write set; a segment ends where the next one starts."""
    ledger = replace(EXAMPLE, segments=(Segment(0, ("a", "b", "c")), Segment(10, ("a", "d", "c"))))
    assert ledger.write_set(0) == ("a", "b")
    assert ledger.write_set(5) == ("c", "a")
    assert ledger.write_set(9) == ("a", "b")
    assert ledger.write_set(10) == ("d", "c")
