"""The worked V3 frames in the client: it writes the requests and understands the responses, byte for byte.

The server's side of them is in tests/fast (test_wire_v3, test_wire_v3_answers) and tests/server/test_requests.py.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bookie._fast.client import framing_v2, framing_v3
from bookie.client.wire import answers_v3, requests_v3
from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
from bookie.client.wire.bookie_space import BookieInfo
from bookie.client.wire.flags import Flags
from bookie.client.wire.messages import framed
from bookie.pb import wire_pb2 as pb
from tests.golden.wire_v2 import E0, E1, E3, K0, KP
from tests.golden.wire_v3 import FRAMES, LAC_1

RECOVERY = Flags.RECOVERY_ADD | Flags.HIGH_PRIORITY
REQUESTS = {
    "add": requests_v3.add(1, E0, K0, 0, deferred_sync=False),
    "recovery_add": requests_v3.add(5, E3, KP, RECOVERY, deferred_sync=False),
    "fence": requests_v3.read(2, 7, -1, Flags.FENCE, KP),
    "long_poll": requests_v3.wait_for_lac(4, 7, 0, 1000),
    "write_lac": requests_v3.write_lac(6, 7, 1, LAC_1, K0),
    "bookie_info": requests_v3.bookie_info(9),
    "start_tls": pb.Request(header=requests_v3.request(pb.START_TLS, 10).header, startTLSRequest=pb.StartTLSRequest()),
    "batch_read": requests_v3.batch_read(13, 7, 0, 10, 1 << 20, 0, None),
    "write_close": requests_v3.write_close(14, 7, K0),
}
ANSWERS: dict[str, tuple[tuple[int, int, int], Callable[[memoryview], Any] | None, Any]] = {
    "add_ok": ((pb.ADD_ENTRY, pb.EOK, 1), None, None),
    "fence_ok": ((pb.READ_ENTRY, pb.EOK, 2), answers_v3.read, ReadAnswer(-1, E1, None, None)),
    "read_no_entry": ((pb.READ_ENTRY, pb.ENOENTRY, 3), None, None),
    "long_poll_ok": ((pb.READ_ENTRY, pb.EOK, 4), answers_v3.read, ReadAnswer(1, E1, 1, 1_700_000_000_000)),
    "long_poll_timeout": ((pb.READ_ENTRY, pb.EOK, 4), answers_v3.read, ReadAnswer(None, None, 0, None)),
    "read_lac_ok": ((pb.READ_LAC, pb.EOK, 7), answers_v3.lacs, LacAnswer(LAC_1, E1)),
    "auth_disabled": ((pb.AUTH, pb.EOK, 8), answers_v3.auth, ("AuthDisabledPlugin", b"")),
    "bookie_info_ok": ((pb.GET_BOOKIE_INFO, pb.EOK, 9), answers_v3.bookie_info, BookieInfo(10**12, 250 * 10**9)),
    "start_tls_ok": ((pb.START_TLS, pb.EOK, 10), None, None),
    "start_tls_refused": ((pb.START_TLS, pb.EBADREQ, 10), None, None),
    "batch_read_refused": ((pb.BATCH_READ_ENTRY, pb.EBADREQ, 12), None, None),
}


def test_every_worked_frame_is_used() -> None:
    """Every worked frame is in a table, and therefore tested."""
    assert set(REQUESTS) | set(ANSWERS) == set(FRAMES)


@pytest.mark.parametrize("name", REQUESTS)
def test_worked_request(name: str) -> None:
    """The client writes the frame."""
    assert framed(REQUESTS[name]) == FRAMES[name]


@pytest.mark.parametrize("name", ANSWERS)
def test_worked_answer(name: str) -> None:
    """The cutter finds operation, status and transaction, and the decoder finds the rest."""
    table: Any = np.zeros(2, dtype=framing_v2.RESPONSE)
    count, taken, need = framing_v3.cut(FRAMES[name], 1 << 20, table)
    assert (count, taken, need) == (1, len(FRAMES[name]), 0)
    op, status, _, _, transaction, at, size = table[0].tolist()
    head, decode, value = ANSWERS[name]
    assert (op, status, transaction) == head
    if decode is not None:
        assert decode(memoryview(FRAMES[name])[at : at + size]) == value
