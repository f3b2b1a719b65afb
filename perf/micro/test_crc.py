"""Checksums of one entry and of one journal group, in bytes per second, by implementation."""

import random

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bookie._fast.base import crc


@pytest.mark.parametrize("size", [128, 1024, 4096, 1 << 20])
@pytest.mark.parametrize("by", crc.implementations())
def test_crc32c(benchmark: BenchmarkFixture, by: str, size: int) -> None:
    """Measure CRC32C of `size` bytes in the CPU cache, including the overhead of the call."""
    data = random.Random(1).randbytes(size)
    benchmark.extra_info["bytes"] = size
    benchmark(crc.crc32c, data, 0, by)


@pytest.mark.parametrize("size", [1024, 1 << 20])
def test_crc32(benchmark: BenchmarkFixture, size: int) -> None:
    """Measure CRC32 of `size` bytes in the CPU cache, including the overhead of the call."""
    data = random.Random(1).randbytes(size)
    benchmark.extra_info["bytes"] = size
    benchmark(crc.crc32, data)
