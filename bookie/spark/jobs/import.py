"""`bkpipe import`: creates new ledgers from what `bkpipe export` wrote, with the entries in order, and a map of ids."""

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.durable import write_file
from bookie.errors import IllegalOperation
from bookie.spark.job import Cluster, Job, with_cluster, with_job, with_spark
from bookie.spark.job_options import unit_option
from bookie.spark.jobs.export import MANIFEST
from bookie.spark.options import Cluster as Reachable
from bookie.spark.planning import in_groups
from bookie.spark.sessions import Sessions
from bookie.spark.state import State

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from bookie.client import BookKeeper, WriteHandle

ORIGIN = "bkpipe.imported-from"
"""The key of custom metadata that has the original id of an imported ledger."""
COLUMNS = "old bigint, new bigint, entries bigint, crc bigint"


@click.command(name="import")
@with_cluster
@click.option(
    "--from",
    "origin",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Directory of the export; it must have this path on all workers.",
)
@click.option(
    "--map",
    "id_map",
    type=click.Path(path_type=Path),
    help="File to write the map of ids to.  [default: id-map.json in --from]",
)
@unit_option(200)
@click.option("--ensemble", type=click.IntRange(1), help="Ensemble size.  [default: that of the original ledger]")
@click.option("--write-quorum", type=click.IntRange(1), help="Write quorum.  [default: that of the original ledger]")
@click.option("--ack-quorum", type=click.IntRange(1), help="Ack quorum.  [default: that of the original ledger]")
@with_spark
@with_job
def command(
    job: Job, cluster: Cluster, spark: Sessions, origin: Path, id_map: Path | None, unit: int, **sizes: int | None
) -> int:
    """Create new ledgers from what `bkpipe export` wrote, and a map from old to new ids.

    Each ledger is written by one task, in the order of its entries, closed, and compared with the count and CRC of the
    manifest; a ledger that differs is deleted again, and the job ends. Digest type and custom metadata are those of
    the original; `bkpipe.imported-from` is added, which helps to find the ledgers of a worker that was killed. The map
    is a JSON object {old: new}.

    \b
    EXAMPLES
      bkpipe import -u grpc://other:3182 --from /exports/today --state /exports/today.state
    """
    manifest = json.loads((origin / MANIFEST).read_bytes())
    ids = [int(one) for one in manifest["order"]]
    with job.open(uri=cluster.uri, origin=str(origin), **sizes) as state:
        left = [one for one in ids if str(one) not in state.done]
        if job.dry_run:
            planned = ({"ledger": one, "done": one not in left, **_exported(manifest, one)} for one in ids)
            return job.end(planned, called="ledgers")
        plan = {one: {**manifest["ledgers"][str(one)], **{k: v for k, v in sizes.items() if v}} for one in left}
        if left:
            with spark.open(job.name) as session, job.progress("ledgers") as tell:
                for group in in_groups(left, unit):
                    tell(len(state.done), len(ids))
                    _import(session, cluster, origin, {one: plan[one] for one in group}, state)
                tell(len(state.done), len(ids))
        new = {str(one): state.done[str(one)]["new"] for one in ids}
    target = id_map or origin / "id-map.json"
    write_file(target, json.dumps(new, indent=1).encode())
    entries = sum(_exported(manifest, one)["entries"] for one in ids)
    return job.end(ledgers=len(ids), entries=entries, map=str(target))


def _exported(manifest: Mapping[str, Any], ledger: int) -> dict[str, Any]:
    return {key: manifest["ledgers"][str(ledger)][key] for key in ("entries", "bytes")}


def _import(
    session: "SparkSession", cluster: Cluster, origin: Path, plan: dict[int, dict[str, Any]], state: State
) -> None:
    full = [one for one, facts in plan.items() if facts["entries"]]
    with cluster.client() as client:
        for one in plan.keys() - set(full):
            with create(client, one, plan[one], cluster.password) as handle:
                state.note(str(one), new=handle.id)
    if not full:
        return
    frame = session.read.option("basePath", str(origin)).parquet(*(str(origin / f"ledger_id={one}") for one in full))
    ordered = frame.select("ledger_id", "entry_id", "value").repartition("ledger_id")
    reachable = Reachable(cluster.uri, tuple(sorted(cluster.settings.items())))
    write = partial(write_ledgers, cluster=reachable, password=cluster.password, plan=plan)
    for row in ordered.sortWithinPartitions("ledger_id", "entry_id").mapInArrow(write, COLUMNS).collect():
        state.note(str(row["old"]), new=row["new"])


def create(client: "BookKeeper", old: int, facts: Mapping[str, Any], password: str) -> "WriteHandle":
    """Create a ledger with the properties of the exported one."""
    custom = {key: base64.b64decode(value) for key, value in facts["custom_metadata"].items()}
    return client.create_ledger(
        ensemble_size=facts.get("ensemble", facts["ensemble_size"]),
        write_quorum_size=facts["write_quorum"],
        ack_quorum_size=facts["ack_quorum"],
        digest_type=facts["digest_type"],
        password=password.encode(),
        custom_metadata={**custom, ORIGIN: str(old).encode()},
    )


def write_ledgers(
    batches: "Iterator[pa.RecordBatch]", *, cluster: Reachable, password: str, plan: Mapping[int, Mapping[str, Any]]
) -> "Iterator[pa.RecordBatch]":
    """Write complete ledgers from ordered rows; the body of a task. Yields old id, new id, entries and CRC of each."""
    import pyarrow as pa  # noqa: PLC0415

    from bookie.spark.clients import client_of  # noqa: PLC0415

    client = client_of(cluster)
    handle: WriteHandle | None = None
    old = entries = crc = 0
    done: list[dict[str, int]] = []
    try:
        for batch in batches:
            for ledger, entry, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if handle is None or ledger != old:
                    if handle is not None:
                        done.append(_ended(handle, old, entries, crc, plan))
                    old, entries, crc = ledger, 0, 0
                    handle = create(client, old, plan[old], password)
                if entry != entries:
                    raise IllegalOperation(
                        f"ledger {ledger}: entry {entry} follows entry {entries - 1}: export the ledger again"
                    )
                handle.append_async(value)
                entries += 1
                crc += zlib.crc32(str(entry).encode() + value)
        if handle is not None:
            done.append(_ended(handle, old, entries, crc, plan))
            handle = None
    except BaseException:
        if handle is not None:  # including one that was closed and differs
            handle.close()
            client.delete_ledger(handle.id)
        raise
    schema = pa.schema([(name, pa.int64()) for name in ("old", "new", "entries", "crc")])
    yield pa.RecordBatch.from_pylist(done, schema=schema)


def _ended(
    handle: "WriteHandle", old: int, entries: int, crc: int, plan: Mapping[int, Mapping[str, Any]]
) -> dict[str, int]:
    handle.flush()
    handle.close()
    assert handle.last_add_confirmed == entries - 1, "all that was flushed is confirmed"
    if (entries, crc) != (plan[old]["entries"], plan[old]["crc"]):
        raise IllegalOperation(
            f"ledger {old}: the files hold {entries} entries with CRC {crc}, the manifest says {plan[old]['entries']}"
            f" with {plan[old]['crc']}: export the ledger again"
        )
    return {"old": old, "new": handle.id, "entries": entries, "crc": crc}
