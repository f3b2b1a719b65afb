"""What a client at a distance does, each in a process on its own host: prints one JSON value.

    python -m perf.distance.client MEASURE URI ARGUMENTS

Entries have 1 KiB. Ledgers of three bookies need two of them to acknowledge an entry.
"""

import asyncio
import json
import sys
import time
from typing import Any

import numpy as np

from bookie.client import BookKeeper, aio
from bookie.client.ledgers.metadata_loop import Known
from bookie.client.replication.copier import Copier
from bookie.client.replication.fragments import fragments
from bookie.client.replication.service import opened
from bookie.metadata import open_driver

SIZE = 1024
PAYLOAD = bytes(SIZE)
QUORUMS: dict[str, Any] = {"ensemble_size": 3, "write_quorum_size": 3, "ack_quorum_size": 2, "digest_type": "CRC32C"}
ADD_TIMEOUT_S = 2
AFTER_S = 3 * ADD_TIMEOUT_S
"""How long entries are added after a bookie has gone, in seconds."""


def adds_asyncio(uri: str, outstanding: int, count: int) -> float:
    """Return the entries per second that one task of asyncio adds."""

    async def run() -> float:
        async with (
            aio.BookKeeper(uri, use_v2_wire_protocol=True, outstanding_max=outstanding) as bk,
            bk.create_ledger(**QUORUMS) as ledger,
        ):
            await ledger.append(PAYLOAD)
            began = time.perf_counter()
            for _ in range(count):
                if outstanding == 1:
                    await ledger.append(PAYLOAD)
                else:
                    ledger.append_async(PAYLOAD)
                    await ledger.drain()
            await ledger.flush()
            return count / (time.perf_counter() - began)

    return asyncio.run(run())


def adds_threads(uri: str, outstanding: int, count: int) -> float:
    """Return the entries per second that one thread adds."""
    with (
        BookKeeper(uri, use_v2_wire_protocol=True, outstanding_max=outstanding) as bk,
        bk.create_ledger(**QUORUMS) as ledger,
    ):
        ledger.append(PAYLOAD)
        began = time.perf_counter()
        for _ in range(count):
            if outstanding == 1:
                ledger.append(PAYLOAD)
            else:
                ledger.append_async(PAYLOAD)
        ledger.flush()
        return count / (time.perf_counter() - began)


def reads(uri: str, count: int) -> float:
    """Return the entries per second that batch reads from one bookie return."""
    with BookKeeper(uri, use_v2_wire_protocol=True) as bk:
        with bk.create_ledger(ensemble_size=1, digest_type="CRC32C") as ledger:
            for _ in range(count):
                ledger.append_async(PAYLOAD)
            ledger.flush()
        with bk.open_ledger(ledger.id) as reader:
            began = time.perf_counter()
            assert sum(map(len, reader.batches())) == count
            return count / (time.perf_counter() - began)


def recovery(uri: str, outstanding: int) -> float:
    """Return the seconds to open a ledger whose writer has gone with so many adds that it did not see acknowledged.

    All of them are sealed before the first one is acknowledged, so no bookie knows that any of them is.
    """
    with BookKeeper(uri, use_v2_wire_protocol=True, outstanding_max=outstanding) as bk:
        ledger = bk.create_ledger(**QUORUMS)
        ledger.append_all(PAYLOAD * outstanding, np.arange(outstanding + 1, dtype=np.int64) * SIZE)
        ledger.flush()
        began = time.perf_counter()
        with bk.open_ledger(ledger.id) as reader:
            assert reader.last_add_confirmed == outstanding - 1
        return time.perf_counter() - began


def copy(uri: str, count: int) -> float:
    """Return the entries per second that auto-recovery copies from the replicas of a closed ledger to a new bookie."""
    with BookKeeper(uri, use_v2_wire_protocol=True) as bk, bk.create_ledger(**QUORUMS) as ledger:
        for _ in range(count):
            ledger.append_async(PAYLOAD)
        ledger.flush()

    async def run() -> float:
        async with opened("copier", open_driver(uri), {}) as environment:
            known = Known(ledger.id, await environment.metadata.read(ledger.id))
            lost = fragments(known.metadata, count - 1)[:1]
            began = time.perf_counter()
            await Copier(environment).replicate(known, lost)
            return count / (time.perf_counter() - began)

    return asyncio.run(run())


def gap(uri: str) -> float:
    """Return the longest time in seconds without an acknowledgement, while another process takes a bookie away.

    The ids of the ledger's bookies are printed when entries are being acknowledged.
    """

    async def run() -> float:
        async with aio.BookKeeper(uri, use_v2_wire_protocol=True, add_timeout_s=ADD_TIMEOUT_S) as bk:
            ledger = await bk.create_ledger(**QUORUMS)
            last = began = time.perf_counter()
            longest, told = 0.0, False
            while last - began < 1 + AFTER_S:
                await ledger.append(PAYLOAD)
                now = time.perf_counter()
                longest, last = max(longest, now - last), now
                if not told and now - began > 1:
                    told, longest = True, 0.0
                    print(json.dumps(ledger.metadata.segments[0].bookies), flush=True)
            await ledger.close()
            return longest

    return asyncio.run(run())


MEASURES: dict[str, Any] = {one.__name__: one for one in (adds_asyncio, adds_threads, reads, recovery, copy, gap)}

if __name__ == "__main__":
    measure, service, *numbers = sys.argv[1:]
    print(json.dumps(MEASURES[measure](service, *map(int, numbers))), flush=True)
