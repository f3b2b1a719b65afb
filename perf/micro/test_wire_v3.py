"""The cost of V3 for a server: parsing requests, and turning runs of records into entries of a batch; 1,000 per
call.
"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bookie._fast.wire import v3, v3_answers
from tests.reference.proto_wire import field

TIMES = 1000
IDS = field(1, 1 << 30) + field(2, 1 << 20)
REQUESTS = {
    "add": field(101, IDS + field(3, bytes(20)) + field(4, bytes(1060))),
    "read": field(100, IDS),
    "batch_read": field(109, IDS + field(3, 100) + field(4, 5 << 20)),
}
OPERATIONS = {"add": 2, "read": 1, "batch_read": 12}


@pytest.mark.parametrize("name", REQUESTS)
def test_parse(benchmark: BenchmarkFixture, name: str) -> None:
    """Parse the body of a frame into a request."""
    frame = field(1, field(1, 3) + field(2, OPERATIONS[name]) + field(3, 1 << 40)) + REQUESTS[name]
    benchmark.extra_info["entries"] = TIMES
    assert benchmark(v3.parse_often, frame, TIMES) == 0


@pytest.mark.parametrize("size", [128, 1024, 4096])
def test_batch_entries(benchmark: BenchmarkFixture, size: int) -> None:
    """Turn a copied run of records into entries of a batch; the copy is included."""
    run = (size.to_bytes(4, "big") + bytes(size)) * TIMES
    benchmark.extra_info["entries"] = TIMES
    benchmark(lambda: v3_answers.batch_entries(bytearray(run)))
