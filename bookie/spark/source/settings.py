"""The options of format `bookkeeper` for reading. Immutable; pickled into readers and tasks. Any process."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from bookie.client import DigestType
from bookie.client.ledgers.opening import digest_type_of
from bookie.errors import IncorrectParameter
from bookie.plural import counted
from bookie.spark.options import Cluster, Options
from bookie.spark.schemas import BOOKKEEPER, Table

__all__ = ["EARLIEST", "LATEST", "SourceSettings"]

NAME = "bookkeeper"
EARLIEST = -2
LATEST = -1
ANSWER_BYTES_MIN = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The options of the source, parsed. docs/spark.md describes them.

    Attributes:
        cluster: `metadataServiceUri` and `bookkeeper.*`.
        ledgers: the ids of option `ledgers`. Exactly one of `ledgers`, `log` and `ledgerFilter` is given.
        log: the name of a log.
        ledger_filter: keys of custom metadata and their values; None: the ledger must not have the key.
        starting: `startingOffsets`: "earliest", "latest", "" for the default, or "json" if `starting_at` applies.
        starting_at: by ledger, the first entry to read.
        ending_at: `endingOffsets`: by ledger, the entry before which to stop.
        created_from_ms: `startingTimestamp`: only ledgers created at or after this time, in milliseconds since 1970.
        created_before_ms: `endingTimestamp`: only ledgers created before this time.
        confirmed: `readMode` is `confirmed`: read only up to the LAC.
        recovery: `openMode` is `recovery`: fence and close the ledgers before reading.
        fail_on_data_loss: `failOnDataLoss`: raise an error if entries or ledgers are missing.
        trigger_offsets_max: `maxOffsetsPerTrigger`: the most entries of a stream's batch.
        trigger_bytes_max: `maxBytesPerTrigger`: the most payload bytes of a stream's batch.
        trigger_offsets_min: `minOffsetsPerTrigger`: wait until there are this many new entries.
        trigger_delay_max_s: `maxTriggerDelay`: the longest such wait, in seconds.
        partitions_min: `minPartitions`: the least number of partitions.
        partition_bytes_max: `maxPartitionBytes`: the approximate size of a partition.
        batch_entries: `readBatchEntries`: the most entries of a batch read.
        batch_bytes: `readBatchBytes`: the most bytes of a batch read.
        include_value: `includeValue`: whether there is a column `value`.
        include_metadata: `includeMetadata`: whether there is a column `metadata`.
        password: the password of the ledgers; None: use that of the metadata, as administrators do
            (verifyDigest=false).
        digest_type: `digestType`; None: that of the metadata.
        pushdown: accept filters that Spark pushes down.
    """

    cluster: Cluster
    ledgers: tuple[int, ...] = ()
    log: str = ""
    ledger_filter: tuple[tuple[str, str | None], ...] = ()
    starting: str = ""
    starting_at: Mapping[int, int] = field(default_factory=dict)
    ending_at: Mapping[int, int] = field(default_factory=dict)
    created_from_ms: int | None = None
    created_before_ms: int | None = None
    confirmed: bool = True
    recovery: bool = False
    fail_on_data_loss: bool = True
    trigger_offsets_max: int | None = None
    trigger_bytes_max: int | None = None
    trigger_offsets_min: int | None = None
    trigger_delay_max_s: float = 900.0
    partitions_min: int = 1
    partition_bytes_max: int = 128 << 20
    batch_entries: int = 1000
    batch_bytes: int = 1 << 20
    include_value: bool = True
    include_metadata: bool = False
    password: bytes | None = field(default=b"", repr=False)
    digest_type: DigestType | None = None
    pushdown: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "SourceSettings":
        """Parse the options of a user.

        Raises:
            ConfigurationError: an option is missing, invalid or unknown.
        """
        options = Options(NAME, given)
        cluster = options.cluster()
        which = options.exactly_one("ledgers", "log", "ledgerFilter")
        starting, starting_at = _offsets(options, "startingOffsets", ("earliest", "latest"))
        _, ending_at = _offsets(options, "endingOffsets", ("latest",))
        recovery = options.choice("openMode", "noRecovery", ("noRecovery", "recovery")) == "recovery"
        fencing = options.boolean("allowFencing", default=False)
        if recovery and not fencing:
            raise options.wrong("openMode", "fences the writers of the ledgers; confirm it with allowFencing=true")
        digest = _digest(options)
        batch_bytes = options.size("readBatchBytes", 1 << 20, low=ANSWER_BYTES_MIN, high=64 << 20)
        in_flight = options.integer("readsInFlight", 8, high=64)
        verified = options.boolean("verifyDigest", default=True)
        password = options.text("password").encode()
        if not verified and password:
            raise options.wrong(
                "verifyDigest",
                "cannot be false if a password is given, which would not be checked; leave one of them out",
            )
        settings = cls(
            cluster=cluster.with_settings(
                stickyReadSEnabled="true",
                maxReadBytesInFlight=str(in_flight * batch_bytes),
                enableDigestTypeAutodetection=str(digest is None).lower(),
            ),
            ledgers=options.ids("ledgers"),
            log=options.text("log"),
            ledger_filter=_pairs(options) if which == "ledgerFilter" else (),
            starting=starting,
            starting_at=starting_at,
            ending_at=ending_at,
            created_from_ms=options.integer("startingTimestamp", None, low=0),
            created_before_ms=options.integer("endingTimestamp", None, low=0),
            confirmed=options.choice("readMode", "confirmed", ("confirmed", "unconfirmed")) == "confirmed",
            recovery=recovery,
            fail_on_data_loss=options.boolean("failOnDataLoss", default=True),
            trigger_offsets_max=options.integer("maxOffsetsPerTrigger", None),
            trigger_bytes_max=options.size("maxBytesPerTrigger", None),
            trigger_offsets_min=options.integer("minOffsetsPerTrigger", None),
            trigger_delay_max_s=options.seconds("maxTriggerDelay", "15m"),
            partitions_min=options.integer("minPartitions", 1, high=100_000),
            partition_bytes_max=options.size("maxPartitionBytes", 128 << 20),
            batch_entries=options.integer("readBatchEntries", 1000, high=1 << 20),
            batch_bytes=batch_bytes,
            include_value=options.boolean("includeValue", default=True),
            include_metadata=options.boolean("includeMetadata", default=False),
            password=password if verified else None,
            digest_type=digest,
            pushdown=options.boolean("pushdown", default=False),
        )
        options.finish()
        return settings

    @property
    def table(self) -> Table:
        """The columns of the rows that are read."""
        left_out = {"value": not self.include_value, "metadata": not self.include_metadata}
        return BOOKKEEPER.without(*(name for name, out in left_out.items() if out))

    @property
    def source(self) -> str:
        """The selection of ledgers as a phrase for messages."""
        if self.log:
            return f"log {self.log!r}"
        if self.ledger_filter:
            parts = (f"!{key}" if value is None else f"{key}={value}" for key, value in self.ledger_filter)
            return "ledgers with " + ",".join(parts)
        return counted(len(self.ledgers), "ledger")


def _pairs(options: Options) -> tuple[tuple[str, str | None], ...]:
    """Parse `key=value,!key,…`."""
    found: list[tuple[str, str | None]] = []
    for part in options.text("ledgerFilter").split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        absent = not equals and key.startswith("!")
        if not key.removeprefix("!") or not (equals or absent):
            raise options.wrong(
                "ledgerFilter", "must be pairs of custom metadata, for example application=billing,!topic"
            )
        found.append((key[1:], None) if absent else (key, value))
    return tuple(found)


def _offsets(options: Options, name: str, words: tuple[str, ...]) -> tuple[str, dict[int, int]]:
    """Return one of the words and {}, or "json" and the entry ids by ledger."""
    text = options.text(name).strip()
    if not text or text.lower() in words:
        return text.lower(), {}
    example = f"must be {' or '.join(words)}, or JSON of ledger and entry, for example "
    example += '{"12":100,"15":-2} (-2 earliest, -1 latest)'
    try:
        given = json.loads(text)
        found = {int(ledger): entry for ledger, entry in given.items()}
    except (ValueError, AttributeError):
        raise options.wrong(name, example) from None
    if any(type(entry) is not int or entry < EARLIEST for entry in found.values()):
        raise options.wrong(name, example)
    return "json", found


def _digest(options: Options) -> DigestType | None:
    given = options.text("digestType", "auto")
    if given.lower() == "auto":
        return None
    try:
        return digest_type_of(given)
    except IncorrectParameter as error:
        raise options.wrong("digestType", f"{error}, or auto") from None
