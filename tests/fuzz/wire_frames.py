"""Fuzz targets for what arrives from the network: request bodies, streams of answers, runs of entries.

The only allowed outcomes are the model's answer and the one error that says what is wrong. To run one target alone:

    python -m tests.fuzz.wire_frames request [libFuzzer options] [corpus directory]
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from bookie._fast.client import framing_v2
from bookie._fast.wire import record, v2, v3
from bookie._fast.wire.digest import Digester
from tests.golden import wire_v3 as golden_v3
from tests.golden.wire_v2 import DIGESTS, E0, E1, FRAMES
from tests.reference import record as record_model
from tests.reference import wire_v2 as wire_model
from tests.reference import wire_v3 as v3_model
from tests.reference.proto_wire import GROUP, GROUP_END, field, tag

LIMIT = 4096
ROWS = np.zeros(64, dtype=framing_v2.RESPONSE)
DIGESTERS = {kind: Digester(kind, bytes.fromhex("1f397c2df518ce03229cc4dc92b608068c3a2fad")) for kind in DIGESTS}
"""Under the MAC key of the password "pw"."""


def request(data: bytes) -> None:
    """Parse `data` as the body of a request."""
    expected, fields = wire_model.decode_request(data)
    status, found = v2.parse(data)
    assert status == expected
    assert fields is None or found == asdict(fields)


def request_v3(data: bytes) -> None:
    """Parse `data` as a V3 request, and with the library. If the library refuses it, the connection speaks V2."""
    assert v3_model.agrees(data, *v3.parse(data))


def cut_all(data: bytes) -> list[wire_model.Response]:
    """Return all answers that the compiled cutter finds, however many tables they fill. Lets its ValueError pass."""
    found, at, count = [], 0, len(ROWS)
    while count == len(ROWS):
        count, taken, need = framing_v2.cut(data[at:], LIMIT, ROWS)
        assert need <= LIMIT
        for op, code, ledger, entry, request_id, start, size in ROWS[:count].tolist():
            body = data[at + start : at + start + size]
            found.append(wire_model.Response(op, code, ledger, entry, request_id, body))
        at += taken
    return found


def responses(data: bytes) -> None:
    """Cut `data` as what a client received. The version byte of an answer is not looked at."""
    whole = wire_model.cut(data, LIMIT)
    decoded = [wire_model.decode_response(body) for body in whole[0]] if whole else [None]
    try:
        found = cut_all(data)
    except ValueError:
        assert None in decoded
        return
    assert found == [answer and replace(answer, version=2) for answer in decoded]


def records(data: bytes) -> None:
    """Walk `data` as a run of entries and verify them under each digest."""
    entries, complete = record_model.unpack(data)
    try:
        offsets = record.offsets(data)
    except ValueError:
        assert not complete
        return
    assert complete
    assert len(offsets) == len(entries) + 1
    for kind, digester in DIGESTERS.items():
        holds = [record_model.holds(kind, b"pw", entry, 7, k) for k, entry in enumerate(entries)]
        assert record.verify(digester, data, offsets, 7, 0) == (holds.index(False) if False in holds else len(holds))


def request_seeds() -> list[bytes]:
    """Return the bodies of all worked frames."""
    return [frame[4:] for frame in FRAMES.values()]


def request_v3_seeds() -> list[bytes]:
    """Return all worked V3 frames, a message in two pieces, contexts, nested groups, and a padded length, as bodies."""
    header = field(1, field(1, 3) + field(2, 1) + field(3, 1) + field(4, 100))
    deep = tag(9, GROUP) * 99 + tag(9, GROUP_END) * 99
    context = field(200, field(1, b"k") + field(2, b"v"))
    pieces = field(100, field(1, 7)) + header + field(100, field(2, -1) + field(100, 2) + deep)
    auth = field(1, field(1, 3) + field(2, 5) + field(3, 1)) + field(102, field(1, b"token") + field(2, b"x"))
    return [
        *(frame[4:] for frame in golden_v3.FRAMES.values()),
        pieces + context,
        auth,
        header + b"\xd2\x86\x80\x00\x00",
    ]


def response_seeds() -> list[bytes]:
    """Return the worked frames, alone and in one stream."""
    return [*FRAMES.values(), b"".join(FRAMES.values())]


def record_seeds() -> list[bytes]:
    """Return runs of entries under each digest."""
    worked = [bytes.fromhex(entry) for entry, _ in DIGESTS.values()]
    return [b"", record_model.pack([E0, E1]), *(record_model.pack([entry, entry]) for entry in worked)]


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "request": (request, request_seeds),
    "request_v3": (request_v3, request_v3_seeds),
    "responses": (responses, response_seeds),
    "records": (records, record_seeds),
}


def main() -> None:
    """Fuzz one target, from its seeds, until stopped."""
    import atheris

    target, seeds = TARGETS[sys.argv.pop(1)]
    for seed in seeds():
        target(seed)
    with atheris.instrument_imports():  # the branches of the models guide the fuzzer through the compiled modules
        importlib.reload(record_model)
        importlib.reload(wire_model)
        importlib.reload(v3_model)
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
