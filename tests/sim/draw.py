"""Everything that is drawn for a seed before its world begins. Ranges are wide, and drawn anew for each seed.

With fixed latencies, timeouts and rates, most faults of a protocol stay hidden however many seeds are tried: what is
fast in one world must be slow in another.
"""

import random
from dataclasses import dataclass, replace
from typing import Any

from bookie.client.config import ClientConfig
from bookie.client.entries.digest import DigestType

__all__ = ["Draw"]

SIZES = (
    (3, 3, 2),
    (3, 3, 2),
    (3, 3, 2),
    (3, 2, 2),
    (4, 3, 2),
    (5, 3, 2),
    (3, 3, 3),
    (5, 5, 3),
    (2, 2, 1),
    (1, 1, 1),
    (3, 2, 1),
)


@dataclass(frozen=True, slots=True)
class Draw:
    """The parameters of one world. Times are in seconds; the others are probabilities."""

    sizes: tuple[int, int, int]
    bookies: int
    digest: DigestType
    password: bytes
    entries: int
    pace_s: float
    burst: int
    payload_max: int
    base_s: tuple[float, float]
    """The one-way latency of a link is drawn between these, on a logarithmic scale."""
    sync_s: tuple[float, float]
    store_s: float
    writer: str
    """How the writer ends: `closes`, `crashes` or `stays`."""
    recoverers: int
    readers: int
    tails: int
    begins_s: float
    """Recoveries and readers begin within this time."""
    faults: int
    lasts_s: float
    """Faults begin within this time, and last up to it."""
    kinds: tuple[str, ...]
    config: ClientConfig
    advanced: bool = False
    """Whether the writer chooses its entry ids, and adds them out of order."""
    deferred: bool = False
    """Whether adds are answered before they are synced; the writer then forces now and then."""
    replicator: bool = False
    """Whether a replication worker copies the entries of bookies that are gone."""
    direct_s: float = 0.0
    """How long adds over direct connections wait; 0: there are none. Their writer mostly awaits one after the other."""
    dies_s: float = 0.0
    """Recoveries die within this time after they began, unless they have ended; 0: they live on."""

    @property
    def grace_s(self) -> float:
        """How long a replication worker waits before it closes an open ledger whose bookies lack entries."""
        return self.lasts_s / 4

    @classmethod
    def of(cls, rng: random.Random) -> "Draw":
        sizes = rng.choice(SIZES)
        scale = 10 ** rng.uniform(-3.5, -1.5)
        entries = rng.choice((1, 2, 3, 4, 6, 10))
        farthest = scale * rng.choice((1, 3, 20))
        slowest_sync = scale * rng.choice((0.2, 2, 10))
        trip = 2 * farthest + slowest_sync
        timeout = trip * rng.choice((1.5, 4, 12, 60, 300))
        pace = trip * rng.choice((0.0, 0.1, 0.5, 2.0))
        lasts = trip * rng.choice((2, 6, 20))
        draw = cls(
            sizes=sizes,
            bookies=sizes[0] + rng.choice((0, 1, 2, 2, 3)),
            digest=rng.choice((DigestType.CRC32C, DigestType.CRC32C, DigestType.CRC32, DigestType.HMAC)),
            password=rng.choice((b"", b"secret")),
            entries=entries,
            pace_s=pace,
            burst=rng.choice((1, 1, 2, 10)),
            payload_max=rng.choice((0, 1, 40, 200)),
            base_s=(scale, farthest),
            sync_s=(scale * 0.1, slowest_sync),
            store_s=scale * rng.choice((0.5, 2, 10)),
            writer=rng.choice(("closes", "closes", "crashes", "stays")),
            recoverers=rng.choice((0, 1, 1, 2, 2)),
            readers=rng.choice((0, 0, 1)),
            tails=rng.choice((0, 0, 1)),
            begins_s=trip * rng.choice((1, 3, 10)) + entries * pace * rng.choice((0, 1)),
            faults=rng.choice((0, 1, 2, 3, 5)),
            lasts_s=lasts,
            kinds=tuple(rng.sample(KINDS, rng.randint(2, 5))),
            config=ClientConfig.of(cls._settings(rng, trip, timeout)),
        )
        # Parameters that were added later are drawn from a copy, so that the worlds of most seeds stay the same.
        ahead = random.Random()
        ahead.setstate(rng.getstate())
        ahead = random.Random(ahead.random())
        v2, advanced, replicator, deferred = (ahead.random() < chance for chance in (0.1, 0.1, 0.12, 0.08))
        config = replace(draw.config, use_v2_wire_protocol=v2)
        draw = replace(draw, config=config, advanced=advanced, replicator=replicator, deferred=deferred and not v2)
        directly = random.Random()
        directly.setstate(ahead.getstate())
        directly = random.Random(directly.random() + 1)
        # Where an ack quorum is enough, direct adds were drawn later, and many worlds are still the same.
        if directly.random() < (0.7 if sizes[1] == sizes[2] else 0.4) and not advanced and not draw.deferred:
            draw = replace(draw, direct_s=trip * directly.choice((0.5, 1.5, 5)), entries=max(entries, 12))
        mortal, restless = ahead.random() < 0.15, ahead.random() < 0.05
        if mortal or restless:
            draw = replace(draw, dies_s=trip * ahead.choice((1, 4, 15)))
        return draw.restless(ahead) if restless else draw

    def restless(self, rng: random.Random) -> "Draw":
        """Return a world in which there is always a fault, and one recovery after the other dies."""
        trip = 2 * self.base_s[1] + self.sync_s[1]
        return replace(
            self,
            entries=10,
            burst=rng.choice((2, 10)),
            bookies=self.sizes[0] + 2,
            writer=rng.choice(("crashes", "stays")),
            recoverers=4,
            readers=1,
            begins_s=trip * rng.choice((10, 30)),
            faults=rng.choice((10, 30)),
            lasts_s=trip * rng.choice((10, 30)),
            kinds=("pause", "block", "one_way", "slow", "reset", "crash"),
        )

    @staticmethod
    def _settings(rng: random.Random, trip: float, timeout: float) -> dict[str, Any]:
        speculative = rng.choice((0.0, trip, trip * 5))
        return {
            "add_timeout_s": timeout,
            "read_timeout_s": timeout * rng.choice((0.5, 1, 1, 3)),
            "connect_timeout_s": timeout * 2,
            "use_v2_wire_protocol": False,
            "outstanding_max": rng.choice((1, 2, 4, 1000)),
            "explicit_lac_interval_s": rng.choice((0.0, 0.0, trip * 2)),
            "delay_ensemble_change": rng.random() < 0.25,
            "speculative_read_first_s": speculative,
            "speculative_read_max_s": speculative * 2,
            "batch_read_enabled": rng.random() < 0.7,
            "sticky_reads": rng.random() < 0.2,
            "recovery_read_batch": rng.choice((1, 1, 2, 5)),
            "recovery_batch_reads": rng.random() < 0.3,
            "placement_policy": "default",
        }


KINDS = (
    "crash", "crash", "crash", "block", "block", "block", "one_way", "lossy", "reset", "pause", "slow", "slow_disk",
    "eio", "rot", "read_only", "refuse", "wipe", "lie", "store_away", "store_trouble", "cut_off",
)  # fmt: skip
