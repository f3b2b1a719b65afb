"""What all ledgers of one client share. Event loop only."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from bookie.client.config import ClientConfig
from bookie.client.contracts import Bookies, Metadata, Placement
from bookie.client.features import Features

__all__ = ["ClientContext"]


def time_of_day() -> int:
    """Return the time of day in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class ClientContext:
    """What all ledgers of one client share.

    Its creator closes `bookies` and `metadata`, and informs `placement` of the registered bookies (`members`).
    """

    config: ClientConfig
    bookies: Bookies
    metadata: Metadata
    placement: Placement
    random: Random
    epoch_ms: Callable[[], int] = time_of_day
    """Returns the time of day in milliseconds since 1970, for values in metadata."""
    features: Features = field(default_factory=Features)
    striped: set[tuple[int, int]] = field(default_factory=set)
    """The ensemble sizes and write quorums of striped ledgers that the log has already warned of."""
