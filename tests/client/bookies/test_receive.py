"""The memory that responses arrive in: it is not overwritten while views of it exist, and is reused afterwards."""

import numpy as np
import pytest

from bookie._fast.client import framing_v2
from bookie.client.wire.receive import RETIRED_MAX, SLAB_BYTES, ReceiveBuffer
from tests.golden.wire_v2 import E0
from tests.reference import record as entries
from tests.reference import wire_v2 as model

PER_SLAB = 5
PART = SLAB_BYTES // PER_SLAB - 4096


def batch(number: int, size: int = PART) -> bytes:
    """Return a response that fills about a fifth of a slab."""
    body = bytes([number % 251]) * size
    return model.encode_response(model.Response(model.BATCH_READ, 0, 7, 0, number, entries.pack([body])))


def feed(buffer: ReceiveBuffer, data: bytes) -> list[memoryview]:
    """Pass bytes as a socket would, and return the bodies of the complete responses, whose memory is lent."""
    bodies = []
    view = memoryview(data)
    while view:
        space = buffer.space()
        size = min(len(space), len(view))
        space[:size] = view[:size]
        del space
        buffer.received(size)
        view = view[size:]
        while True:
            count, received = buffer.cut()
            if not count:
                break
            for *_, at, size in buffer.rows[:count].tolist():
                buffer.lend()
                bodies.append(received[at : at + size])
    return bodies


@pytest.mark.parametrize("held", [0, 1, 3, 100])
def test_what_is_held_stays(held: int) -> None:
    """Batches that are kept, more or fewer than the slabs that are kept, retain their bytes."""
    buffer = ReceiveBuffer(5 << 20, framing_v2.cut)
    kept: list[tuple[int, memoryview]] = []
    for number in range(60):
        (body,) = feed(buffer, batch(number))
        kept = [*kept, (number, body)][-held or 61 :]
        for name, seen in kept:
            assert seen[4] == seen[-1] == name % 251
            assert len(seen) == PART + 4


@pytest.mark.parametrize("size", [PART, SLAB_BYTES + 5, 2 * SLAB_BYTES])
def test_memory_comes_back(size: int) -> None:
    """BR10: a reader that drops its batches is served from the same few slabs, however large the batches are."""
    buffer = ReceiveBuffer(5 << 20, framing_v2.cut)
    slabs = set()
    for number in range(200):
        (body,) = feed(buffer, batch(number, size))
        slabs.add(np.asarray(body.obj).ctypes.data)
    assert len(slabs) <= 2 * (RETIRED_MAX + 2)


def test_a_table_that_is_too_small_for_one_slab() -> None:
    """More responses than the table has rows are returned in several tables, in order."""
    buffer = ReceiveBuffer(5 << 20, framing_v2.cut)
    answer = model.encode_response(model.Response(model.READ, 0, 7, 0, body=E0))
    assert len(feed(buffer, answer * 20_000)) == 20_000
