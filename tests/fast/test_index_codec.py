"""Test packed runs against the model, byte by byte. Damaged values are refused, and never read in part."""

import random
import struct
from typing import Any

import crc32c as peer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.index import codec
from tests.reference import location_index as model

SPREADS = [1, 100, 254, 255, 256, 65_534, 65_535, 65_536, (1 << 24) - 2, (1 << 24) - 1, 1 << 24, (1 << 32) - 21]


@st.composite
def lengths(draw: st.DrawFn) -> list[int]:
    """Draw entry sizes for up to a full run: spreads around each slot width, with and without gaps, ends present."""
    count = draw(st.one_of(st.integers(1, 12), st.integers(1, model.SLOTS_MAX)))
    spread, gaps = draw(st.sampled_from(SPREADS)), draw(st.sampled_from([0.0, 0.02, 0.5, 0.98]))
    numbers = random.Random(draw(st.integers(0, 1 << 32)))
    found = [0 if numbers.random() < gaps else 20 + numbers.randrange(spread) for _ in range(count)]
    found[0], found[-1] = 20 + spread - 1, 20 + numbers.choice([0, spread - 1])
    return found


IDS = st.integers(0, 2**62)


BEHIND = st.none() | st.tuples(st.integers(2**62 + 1, 2**63 - 1), IDS)


@given(
    ledger=IDS,
    first=IDS,
    log_id=st.integers(0, 2**32 - 1),
    offset=st.integers(0, 2**63),
    sizes=lengths(),
    behind=BEHIND,
)
def test_packs_like_the_model(
    ledger: int, first: int, log_id: int, offset: int, sizes: list[int], behind: tuple[int, int] | None
) -> None:
    """Packing gives the model's bytes, and unpacking what was packed; a part of a run links to the rest of it."""
    key, value, packed = codec.pack_run(ledger, first, log_id, offset, sizes, behind)
    assert (key, value, packed) == model.pack_run(ledger, first, log_id, offset, sizes, behind)
    assert codec.unpack_run(key, value) == (ledger, first, log_id, offset, sizes[:packed])
    left = next((first + slot for slot in range(packed, len(sizes)) if sizes[slot]), None)
    assert codec.unpack_next(key, value) == (behind if left is None else (ledger, left))


@given(behind=BEHIND)
def test_the_head_names_the_first_run(behind: tuple[int, int] | None) -> None:
    """The head links to the first run. It is not a run itself, and its key is below that of each run."""
    key, value = codec.pack_head(behind)
    assert (key, value) == model.pack_head(behind)
    assert codec.unpack_next(key, value) == behind
    assert key < model.pack_run(0, 0, 0, 0, [1])[0]
    with pytest.raises(ValueError, match="not a packed run"):
        codec.unpack_run(key, value)


@given(sizes=lengths())
def test_runs_of_the_first_version(sizes: list[int]) -> None:
    """Runs of version 1 can be read by tools, and link to no other run."""
    sizes = [size and 100 for size in sizes[:600]]
    sizes[-1] = 100
    key, value = model.pack_unchained(1, 2, 3, 4, sizes)
    assert codec.unpack_run(key, value) == (1, 2, 3, 4, sizes)
    with pytest.raises(ValueError, match="not a packed run"):
        codec.unpack_next(key, value)


@pytest.mark.parametrize("behind", [(7, 10), (7, 9), (6, 2**62), (8, -1), (-1, -2)])
def test_what_names_no_run_behind_it_is_refused(behind: tuple[int, int]) -> None:
    """A link to a run that is not further on is refused even if the checksum is right."""
    key, value, _ = model.pack_run(7, 10, 2, 1024, [100], behind)
    with pytest.raises(ValueError, match="not a packed run"):
        codec.unpack_next(key, value)


def test_worked_example() -> None:
    """The example of docs/formats/index.md has three entries of 100, 0 (a gap) and 103 bytes."""
    key, value, packed = codec.pack_run(7, 10, 2, 1024, [100, 0, 103], (9, 0))
    assert packed == 3
    assert key.hex() == "0000000000000007000000000000000a"
    assert value[4:].hex() == (
        "02010003" + "00000002" + "0000000000000400" + "00000064" + "0000000000000009" + "0000000000000000" + "010004"
    )
    assert value[:4] == peer.crc32c(key + value[4:]).to_bytes(4, "big")


def test_equal_lengths_need_no_slots() -> None:
    """A full run of entries of one size is a header without slots."""
    _, value, packed = codec.pack_run(1, 0, 1, 1024, [1024] * model.SLOTS_MAX)
    assert (len(value), packed) == (40, model.SLOTS_MAX)


@given(sizes=lengths(), position=st.integers(0, 1 << 20), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(sizes: list[int], position: int, bit: int) -> None:
    """A flipped bit is found in the key as well: a run that moved to another key is not valid there."""
    key, value, _ = codec.pack_run(5, 6, 7, 8, sizes)
    both = bytearray(key + value)
    both[position % len(both)] ^= 1 << bit
    with pytest.raises(ValueError, match="not a packed run"):
        codec.unpack_run(bytes(both[:16]), bytes(both[16:]))


@given(key=st.binary(min_size=14, max_size=18), value=st.binary(max_size=80))
def test_hostile_runs(key: bytes, value: bytes) -> None:
    """Any bytes with a right checksum are read within their bounds or refused."""
    value = value[:4] + bytes([len(value) % 3]) + value[5:] if len(value) > 4 else value
    value = peer.crc32c(key + value[4:]).to_bytes(4, "big") + value[4:]
    try:
        *_, sizes = codec.unpack_run(key, value)
    except ValueError:
        return
    assert len(sizes) == int.from_bytes(value[6:8], "big")
    assert sizes[0]
    assert sizes[-1]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("version", {"version": 3}),
        ("width", {"width": 5}),
        ("count below the slots", {"count": 2}),
        ("count 0", {"count": 0, "width": 0, "slots": b""}),
        ("count above the limit", {"count": 1025, "width": 0, "slots": b""}),
        ("base 0", {"base": 0}),
        ("first slot absent", {"slots": b"\x00\x01\x01"}),
        ("last slot absent", {"slots": b"\x01\x01\x00"}),
        ("ids past the end", {"first": 2**63 - 3}),
        ("negative id", {"first": -1}),
    ],
)
def test_each_broken_field_is_refused(field: str, change: dict[str, Any]) -> None:
    """A value with one wrong field and a right checksum is refused."""
    f: dict[str, Any] = {
        "version": 2,
        "width": 1,
        "count": 3,
        "base": 50,
        "first": 9,
        "slots": b"\x01\x00\x05",
    } | change
    key = struct.pack(">qq", 4, f["first"])
    body = struct.pack(">BBHIQIqq", f["version"], f["width"], f["count"], 1, 2, f["base"], -1, -1) + f["slots"]
    with pytest.raises(ValueError, match="not a packed run"):
        codec.unpack_run(key, peer.crc32c(key + body).to_bytes(4, "big") + body)


@given(key=st.binary(min_size=7, max_size=9), value=st.binary(max_size=60), sizes=st.tuples(IDS, IDS))
def test_hostile_ledger_records(key: bytes, value: bytes, sizes: tuple[int, int]) -> None:
    """Sizes inside a record are checked against its end, without sums that could overflow."""
    inner = struct.pack(">BBHI", 1, value[0] if value else 0, sizes[0] & 0x1F, sizes[1] & 0xFFFFFFFF)
    body = inner + value
    record = peer.crc32c(key + body).to_bytes(4, "big") + body
    try:
        _, _, _, master_key, lac, _ = codec.unpack_ledger(key, record)
    except ValueError:
        return
    assert master_key + lac == value


def test_bad_arguments() -> None:
    """A run without slots, with too many, or with a gap at its start is refused with an error."""
    for bad in ([], [0, 1], [1] * 1025):
        with pytest.raises(ValueError, match="pass 1 to 1024, the first one not 0"):
            codec.pack_run(1, 1, 1, 1, bad)
