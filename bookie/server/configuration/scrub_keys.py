"""The keys of the scrub. Pure data, a part of `keys`."""

from bookie.server.configuration.key import Group, Key
from bookie.storage.settings import MIB

__all__ = ["SCRUB"]

SCRUB = Group(
    "Scrub",
    (
        Key("scrubEnabled", "scrub.enabled", bool, "true", "Read entry logs again and again, so that damage is found"
            " and repaired before a reader meets it: docs/scrub.md; false: only when `bkadmin scrub` says so."),
        Key("scrubRateByBytes", "scrub.rate_bytes_per_s", int, str(8 * MIB), "Bytes of entry logs that it reads in a"
            " second at most, over all ledger directories; 0: as fast as the disks.", unit="bytes"),
        Key("scrubIntervalSeconds", "scrub.interval_s", int, "604800", "From the beginning of one pass over all entry"
            " logs to that of the next.", low=1, unit="s"),
    ),
)  # fmt: skip
