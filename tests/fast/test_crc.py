"""Test every implementation of CRC32C and CRC32 that this processor has against a model, zlib and PyPI's crc32c."""

import platform
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import crc32c as peer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.base import crc
from tests.reference import crc as model

IMPLEMENTATIONS = crc.implementations()


@pytest.fixture(params=IMPLEMENTATIONS)
def crc32c(request: pytest.FixtureRequest) -> Callable[..., int]:
    """Return CRC32C with one implementation at a time."""
    return lambda data, value=0: crc.crc32c(data, value, by=request.param)


def test_known_vectors(crc32c: Callable[..., int]) -> None:
    """The check values of RFC 3720 and of the IEEE catalogue are computed."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0
    assert crc.crc32(b"123456789") == 0xCBF43926


@given(data=st.binary(max_size=300), value=st.integers(0, 2**32 - 1))
def test_like_the_model(data: bytes, value: int) -> None:
    """Any bytes, continuing any value, give the model's sum."""
    expected = model.crc(model.CASTAGNOLI, data, value)
    assert [crc.crc32c(data, value, by=name) for name in IMPLEMENTATIONS] == [expected] * len(IMPLEMENTATIONS)
    assert crc.crc32(data, value) == model.crc(model.IEEE, data, value) == zlib.crc32(data, value)


def test_like_the_peer_at_every_length_and_alignment(crc32c: Callable[..., int]) -> None:
    """Lengths around every block boundary of the interleaving, at several alignments, give the peer's sum."""
    data = random.Random(1).randbytes(40_000)
    lengths = [*range(700), *range(6_100, 6_200), 12_287, 12_288, 12_289, 39_990]
    for length in lengths:
        for start in (0, 1, 5):
            part = memoryview(data)[start : start + length]
            assert crc32c(part) == peer.crc32c(part), (start, length)


@given(parts=st.lists(st.integers(0, 7_000), max_size=5), seed=st.integers(0, 2**32))
def test_incremental(parts: list[int], seed: int) -> None:
    """Sums computed piece by piece equal the sum of all bytes, even when the implementation alternates."""
    data = random.Random(seed).randbytes(sum(parts))
    ieee = castagnoli = start = 0
    for number, size in enumerate(parts):
        piece = memoryview(data)[start : start + size]
        castagnoli = crc.crc32c(piece, castagnoli, by=IMPLEMENTATIONS[number % len(IMPLEMENTATIONS)])
        ieee = crc.crc32(piece, ieee)
        start += size
    assert castagnoli == peer.crc32c(data)
    assert ieee == zlib.crc32(data)


def test_any_contiguous_buffer() -> None:
    """bytes, bytearray and memoryview are accepted, writable or not, and a strided view is refused."""
    assert crc.crc32c(bytearray(b"abc")) == crc.crc32c(memoryview(b"abc")) == peer.crc32c(b"abc")
    with pytest.raises((ValueError, BufferError)):
        crc.crc32c(memoryview(b"abcdef")[::2])


def test_the_processor_is_used() -> None:
    """A processor with CRC instructions uses them rather than tables, and an unknown implementation is refused."""
    assert crc.implementation() == IMPLEMENTATIONS[0]
    if platform.machine() == "x86_64":
        flags = Path("/proc/cpuinfo").read_text()
        assert (crc.implementation() == "sse4.2") == ("sse4_2" in flags and "pclmulqdq" in flags)
    with pytest.raises(ValueError, match="no CRC32C implementation 'abacus'"):
        crc.crc32c(b"", by="abacus")
