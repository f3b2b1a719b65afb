"""The options of the sink, validated, as a value that Spark pickles into tasks."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bookie.client import DigestType
from bookie.errors import ConfigurationError, IncorrectParameter
from bookie.metadata.records.logs import check_name
from bookie.spark.options import Cluster, Options

__all__ = ["Settings", "settings_of"]

DIGESTS = ("CRC32C", "CRC32", "HMAC", "MAC", "DUMMY")
VALUE, LOG = "value", "log"
VALUE_TYPES = ("binary", "string")
ENSEMBLE_MAX = 64
SPARKS_OWN = ("checkpointLocation", "queryName")
"""Options of a stream that Spark itself uses, and passes on as well."""


@dataclass(frozen=True)
class Settings:
    """The options of the sink, parsed. docs/spark.md describes them.

    Attributes:
        cluster: `metadataServiceUri`, `bookkeeper.*` and `maxInFlight`.
        sizes: `ensembleSize`, `writeQuorumSize` and `ackQuorumSize`.
        digest: `digestType`, the digest type of the ledgers.
        password: the password of the ledgers.
        log: the log of all rows; empty if the column `log` names it, or if there is none.
        log_column: whether the column `log` names the log of each row.
        ledger_bytes_max: `maxLedgerBytes`: payload bytes after which the next ledger begins; None: no limit.
        metadata: `metadata.*`: custom metadata of the ledgers.
        keep_on_abort: `onAbort` is `keep`: do not delete what failed attempts wrote.
        orphan_ttl_s: `orphanTtl`: seconds after which what is not committed may be deleted; 0: never.
        manifest: `manifestPath`: directory for manifests; empty: none.
        overwrite: replace the ledgers of the log instead of appending to them.
        job: a random id of this write.
    """

    cluster: Cluster
    sizes: tuple[int, int, int]
    digest: str
    password: bytes = field(repr=False)
    log: str
    log_column: bool
    ledger_bytes_max: int | None
    metadata: tuple[tuple[str, str], ...]
    keep_on_abort: bool
    orphan_ttl_s: float
    manifest: str
    overwrite: bool
    job: str


def settings_of(given: Mapping[str, str], schema: Any, *, overwrite: bool) -> Settings:
    """Parse the options of a user for rows of a schema.

    Args:
        given: the options.
        schema: the StructType of the rows.
        overwrite: whether the save mode is overwrite.

    Raises:
        ConfigurationError: an option is missing, invalid or unknown, or the columns cannot be written.
    """
    options = Options("bookkeeper", given)
    ensemble = options.integer("ensembleSize", 3, high=ENSEMBLE_MAX)
    write = options.integer("writeQuorumSize", ensemble, high=ENSEMBLE_MAX)
    ack = options.integer("ackQuorumSize", write // 2 + 1, high=ENSEMBLE_MAX)
    if not ack <= write <= ensemble:
        raise options.wrong(
            "ackQuorumSize", f"the sizes {ensemble}/{write}/{ack} must satisfy ensemble >= write quorum >= ack quorum"
        )
    log, log_column = options.text("log"), _columns(schema)
    if log:
        try:
            check_name(log)
        except IncorrectParameter as error:
            raise options.wrong("log", str(error)) from None
    manifest = options.text("manifestPath")
    if not (log or log_column or manifest):
        raise options.wrong(
            "log", "is required, unless the rows have a column log, or manifestPath says where to list the ledgers"
        )
    if overwrite and not log:
        raise options.wrong("log", "is required with mode overwrite, which replaces the ledgers of one log")
    in_flight = {"maxOutstandingAdds": str(options.integer("maxInFlight", 10_000))}
    cluster = options.cluster().with_settings(**in_flight, diskWeightBasedPlacementEnabled="true")
    settings = Settings(
        cluster=cluster,
        sizes=(ensemble, write, ack),
        digest=DigestType[_digest(options)].name,
        password=options.text("password").encode(),
        log=log,
        log_column=log_column and not log,
        ledger_bytes_max=options.size("maxLedgerBytes", None),
        metadata=tuple(sorted(options.prefixed("metadata.").items())),
        keep_on_abort=options.choice("onAbort", "delete", ("delete", "keep")) == "keep",
        orphan_ttl_s=options.seconds("orphanTtl", "24h"),
        manifest=manifest,
        overwrite=overwrite,
        job=secrets.token_hex(16),
    )
    for name in SPARKS_OWN:
        options.text(name)
    options.finish()
    return settings


def _digest(options: Options) -> str:
    name = options.choice("digestType", "CRC32C", DIGESTS)
    return "HMAC" if name == "MAC" else name


def _columns(schema: Any) -> bool:
    """Return whether the rows have a column `log`.

    Raises:
        ConfigurationError: the columns cannot be written.
    """
    types = {one.name: one.dataType.simpleString() for one in schema.fields}
    if types.get(VALUE) not in VALUE_TYPES:
        raise ConfigurationError(
            f"format bookkeeper: column value is {types.get(VALUE, 'missing')}: it must be binary or string, "
            "for example df.select(to_json(struct('*')).alias('value'))"
        )
    if types.get(LOG, "string") != "string":
        raise ConfigurationError(f"format bookkeeper: column log is {types[LOG]}: it must be string")
    if unknown := sorted(set(types) - {VALUE, LOG}):
        raise ConfigurationError(
            f"format bookkeeper: column {unknown[0]} cannot be written: select value, and log if present"
        )
    return LOG in types
