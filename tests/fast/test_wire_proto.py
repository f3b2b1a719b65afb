"""Test protobuf's wire format: the compiled readers and writers against the model, and both against the library."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st

from bookie._fast.wire import proto
from bookie.pb import wire_pb2 as pb
from tests.reference import proto_wire as model
from tests.reference.proto_wire import BYTES, FIXED32, FIXED64, GROUP, GROUP_END, VARINT

U64 = st.integers(0, 2**64 - 1)
NUMBERS = st.one_of(st.integers(0, 3), st.sampled_from([15, 16, 100, 2**29 - 1]))
PADDED = st.integers(0, 6)


@st.composite
def fields(draw: st.DrawFn, depth: int = 0) -> bytes:
    """Draw a field, mostly valid, of any type, with padded tags and lengths, and groups with right and wrong ends."""
    number, kind = draw(NUMBERS), draw(st.integers(0, 7))
    out = model.tag(number, kind, draw(PADDED))
    if kind == VARINT:
        return out + draw(st.one_of(st.builds(model.encode, U64, st.integers(0, 11)), st.binary(max_size=11)))
    if kind == BYTES:
        body = draw(st.binary(max_size=4))
        return out + model.encode(len(body) + draw(st.sampled_from([0, 0, 0, 1, 2**31, 2**32])), draw(PADDED)) + body
    if kind == GROUP and depth < 4:
        inner = b"".join(draw(st.lists(fields(depth=depth + 1), max_size=2)))
        return out + inner + model.tag(draw(st.sampled_from([number, number, number, 9])), GROUP_END)
    return out + draw(st.binary(max_size=8 if kind in (FIXED64, FIXED32) else 0))


def library_accepts(data: bytes) -> bool:
    """Return whether upb accepts a message that has no fields of its own."""
    try:
        pb.StartTLSRequest.FromString(data)
    except DecodeError:
        return False
    return True


@given(st.lists(fields(), max_size=4).map(b"".join), st.integers(0, 3))
@example(b"\x00\x00", 0)
@example(b"\x0b\x00\x00\x0c", 0)
@example(b"\x0b\x03\x04\x0c", 0)
def test_skipping_like_the_model(data: bytes, cut: int) -> None:
    """Valid and invalid fields of every type, whole or truncated, are skipped as by model and library."""
    data = data[: len(data) - cut]
    count = proto.skip_fields(data)
    assert count == model.skip_fields(data)
    assert (count >= 0) == library_accepts(data)


@given(st.binary(max_size=40), st.integers(0, 2))
def test_any_bytes_like_the_model(data: bytes, nesting: int) -> None:
    """Any bytes are skipped or refused as by model and library."""
    assert proto.skip_fields(data, nesting) == model.skip_fields(data, nesting)
    assert (proto.skip_fields(data) >= 0) == library_accepts(data)


@pytest.mark.parametrize("depth", [1, 99, 100, 101, 5000])
def test_nesting_ends(depth: int) -> None:
    """At most a hundred nested groups are accepted, without recursion."""
    data = model.tag(7, GROUP) * depth + model.tag(7, GROUP_END) * depth
    assert (proto.skip_fields(data) == 1) == (depth <= model.NESTING_MAX) == library_accepts(data)


def test_nesting_has_a_bound_of_its_own() -> None:
    """The table of open groups is limited."""
    with pytest.raises(ValueError, match="at most"):
        proto.skip_fields(b"", 101)


@given(U64, st.integers(0, 10))
def test_varints_both_ways(value: int, size: int) -> None:
    """Values are encoded in the shortest form or padded, and decoded whatever follows."""
    if size and 7 * size < value.bit_length():
        with pytest.raises(ValueError, match="does not fit"):
            proto.encode(value, size)
        return
    data = proto.encode(value, size)
    assert data == model.encode(value, size)
    assert proto.varint(data + b"\xff") == (value, len(data))
    assert proto.varint(data[:-1]) is None


@given(st.integers(1, 15), st.integers(-(2**63), 2**63 - 1))
def test_number_fields(number: int, value: int) -> None:
    """Negative numbers take ten bytes, as the library writes them."""
    assert proto.number_field(number, value) == model.field(number, value)


def test_number_fields_have_short_tags() -> None:
    """The tag of a field from 16 on needs more than one byte, and is refused."""
    with pytest.raises(ValueError, match="1 to 15"):
        proto.number_field(16, 0)
