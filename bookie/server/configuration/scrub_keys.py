"""The keys of the scrub. Pure data, a part of `keys`."""

from bookie.server.configuration.key import Group, Key
from bookie.storage.settings import MIB

__all__ = ["SCRUB"]

SCRUB = Group(
    "Scrub",
    (
        Key("scrubEnabled", "scrub.enabled", bool, "true", "Read entry logs again and again, so that damage is found"
            " and repaired before a reader needs the data: docs/scrub.md; false: only when `bkadmin scrub` requests"
            " it."),
        Key("scrubRateByBytes", "scrub.rate_bytes_per_s", int, str(8 * MIB), "Maximum number of bytes of entry logs"
            " that the scrub reads per second, over all ledger directories; 0: as fast as the disks.", unit="bytes"),
        Key("scrubIntervalSeconds", "scrub.interval_s", int, "604800", "Time from the beginning of one pass over all"
            " entry logs to the beginning of the next.", low=1, unit="s"),
    ),
)  # fmt: skip
