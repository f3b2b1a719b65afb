"""The options of the sink, checked, as a value that Spark pickles into tasks."""

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
"""Options of a stream that Spark reads itself, and hands over too."""


@dataclass(frozen=True)
class Settings:
    """Where ledgers are written, and how. `job` is this writing's own id."""

    cluster: Cluster
    sizes: tuple[int, int, int]
    """Ensemble, write quorum, ack quorum."""
    digest: str
    password: bytes = field(repr=False)
    log: str
    """Of all rows; empty: column `log` names it, or there is none."""
    log_column: bool
    ledger_bytes_max: int | None
    metadata: tuple[tuple[str, str], ...]
    keep_on_abort: bool
    orphan_ttl_s: float
    manifest: str
    overwrite: bool
    job: str


def settings_of(given: Mapping[str, str], schema: Any, *, overwrite: bool) -> Settings:
    """What `given` options mean for rows of `schema`, a StructType. ConfigurationError."""
    options = Options("bookkeeper", given)
    ensemble = options.integer("ensembleSize", 3, high=ENSEMBLE_MAX)
    write = options.integer("writeQuorumSize", min(3, ensemble), high=ENSEMBLE_MAX)
    ack = options.integer("ackQuorumSize", min(2, write), high=ENSEMBLE_MAX)
    if not ack <= write <= ensemble:
        raise options.wrong("ackQuorumSize", f"{ensemble}/{write}/{ack}: it must be ensemble >= write >= ack quorum")
    log, log_column = options.text("log"), _columns(schema)
    if log:
        try:
            check_name(log)
        except IncorrectParameter as error:
            raise options.wrong("log", str(error)) from None
    manifest = options.text("manifestPath")
    if not (log or log_column or manifest):
        raise options.wrong(
            "log", "give it, or a column of that name, or manifestPath to have the ledgers listed there"
        )
    if overwrite and not log:
        raise options.wrong("log", "overwriting replaces the ledgers of one log: name it")
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
    """Whether there is a column `log`. ConfigurationError: rows that cannot be written."""
    types = {one.name: one.dataType.simpleString() for one in schema.fields}
    if types.get(VALUE) not in VALUE_TYPES:
        raise ConfigurationError(
            f"format bookkeeper: column value is {types.get(VALUE, 'missing')}: give it as binary or string, "
            "e.g. df.select(to_json(struct('*')).alias('value'))"
        )
    if types.get(LOG, "string") != "string":
        raise ConfigurationError(f"format bookkeeper: column log is {types[LOG]}: it must be string")
    if unknown := sorted(set(types) - {VALUE, LOG}):
        raise ConfigurationError(f"format bookkeeper: column {unknown[0]} would be lost: select value, and log if any")
    return LOG in types
