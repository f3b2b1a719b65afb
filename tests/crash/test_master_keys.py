"""A ledger's first keys may be empty; the process ends between any two steps of a checkpoint that follows (B4).

A replay accepts what was accepted before: first an empty key, then the one that replaces it permanently.
"""

import signal
from pathlib import Path

import pytest

from bookie.pb import wire_pb2 as wire
from tests.crash.planned import PlannedBookie
from tests.crash.test_checkpoint_steps import STEPS
from tests.hostile.peer import KEY, Peer, entry_of
from tests.hostile.v3 import add3, ask, part, read3, send

PATIENCE_S = 60.0
ZEROS = bytes(20)
COMMITTED = STEPS.index("index committed") + 1
KEY_CHANGES = {
    "none, then one": ((b"", KEY), COMMITTED),
    "zeros, then one": ((ZEROS, KEY), COMMITTED),
    **{f"none, zeros, none, then one; {step}": ((b"", ZEROS, b"", KEY), n) for n, step in enumerate(STEPS, 1)},
}


@pytest.mark.thorough
@pytest.mark.parametrize(("keys", "step"), KEY_CHANGES.values(), ids=KEY_CHANGES)
def test_b4_a_key_that_replaced_an_empty_one_starts_again(keys: tuple[bytes, ...], step: int, tmp_path: Path) -> None:
    """The journal still has the older key, and the index may have the newer one: each start finds every entry."""
    bookie = PlannedBookie(tmp_path, {"flushInterval": "200"})
    bookie.control = True
    bookie.start()
    with Peer(bookie.address) as peer:
        for entry, key in enumerate(keys):
            assert ask(peer, add3(1, entry, b"kept", masterKey=key)).status == wire.EOK
        bookie.order(step=step)
        send(peer, add3(2, 0, b"something to flush"))
        assert bookie.exited(PATIENCE_S) == -signal.SIGABRT, bookie.log_text()[-2000:]
    bookie.control = False
    bookie.start()
    with Peer(bookie.address) as peer:
        for entry in range(len(keys)):
            assert part(ask(peer, read3(1, entry))).body == entry_of(1, entry, b"kept")
        assert ask(peer, add3(1, 9, masterKey=b"")).status == wire.EUA
        assert ask(peer, add3(1, 9, masterKey=ZEROS)).status == wire.EUA
        assert ask(peer, add3(1, 9, masterKey=KEY)).status == wire.EOK
    assert bookie.stop() == 0
