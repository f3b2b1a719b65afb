"""`bkadmin metadata`: copy the metadata of a cluster from one store to another one, or compare two stores."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from bookie.errors import IllegalOperation
from bookie.terminal.output import done, progress_bar, show
from bookie_admin.bkadmin.options import sure, with_dry_run, with_output, with_timeout, with_yes

if TYPE_CHECKING:
    from bookie.metadata.copying import Done
    from bookie.metadata.driver import MetadataDriver

SHOWN_MAX = 1000


@click.command()
@click.argument("order", type=click.Choice(("copy", "compare")))
@click.argument("source_uri", metavar="FROM")
@click.argument("target_uri", metavar="TO")
@with_yes
@with_dry_run
@with_timeout
@with_output
def command(
    *, order: str, source_uri: str, target_uri: str, yes: bool, dry_run: bool, timeout_s: float, output: str
) -> None:
    """Copy the metadata of a cluster from one store to another one, or compare two stores.

    FROM and TO are metadata service URIs, such as zk+hierarchical://h1:2181/ledgers, etcd://h1:2379,h2:2379/ledgers,
    grpc://host:3182 (the bookie that holds an embedded store) or lmdb:///directory (the store itself, while that bookie
    is stopped). Cookies, ledgers, logs, marks of under-replicated ledgers, settings and the instance id are copied, and
    ids that were given once are not given again.

    \b
    1. Stop clients and auto-recovery, and make all bookies read-only (bkadmin readonly on), or stop them.
    2. bkadmin metadata copy FROM TO
    3. Stop the bookies, set metadataServiceUri=TO for bookies and clients, and start them.

    The copy compares everything until nothing differs, and then lets bookies start on it. If it is interrupted, call it
    again. FROM is left as it is. A store that bookies have begun to use is not overwritten.

    \b
    compare      show what differs; the exit code is 1 if anything does
    """
    from bookie.metadata import copying, open_driver  # noqa: PLC0415

    if source_uri == target_uri:
        raise click.UsageError("FROM and TO are the same store")
    timeout_ms = int(timeout_s * 1000)
    with ExitStack() as stack:

        def opened(uri: str, *, new: bool = False) -> "MetadataDriver":
            driver = open_driver(uri, session_timeout_ms=timeout_ms, create=new)
            stack.callback(driver.stop)
            driver.start()
            return driver

        source = opened(source_uri)
        if order == "compare":
            show_differences(output, copying.compare(source, opened(target_uri)))
            return
        instance_id = copying.check_source(source)
        question = f"copy the metadata of cluster {instance_id} to {target_uri}?"
        if not sure(question, yes=yes, dry_run=dry_run, output=output):
            return
        target = opened(target_uri, new=True)
        copying.begin(source, target)
        total = sum(len(page) for page in source.ledgers.ranges())
        counted = counting(copying.copy(source, target), total)
        cookies = copying.finish(source, target)
    done(
        output, f"copied the metadata of cluster {instance_id}; nothing differs. Next: set metadataServiceUri",
        instance_id=instance_id, cookies=cookies, **{name: counted[name] for name in ("created", "changed", "deleted")},
    )  # fmt: skip


def counting(each: "Iterator[Done]", total: int) -> Counter[str]:
    """Count outcomes, and show the progress of each pass over the ledgers."""
    counted: Counter[str] = Counter()
    ledgers = 0
    with progress_bar("ledgers") as bar:
        for one in each:
            counted[one.outcome] += 1
            ledgers = ledgers + 1 if one.kind == "ledger" else 0
            if ledgers:
                bar(ledgers, max(ledgers, total))
    return counted


def show_differences(output: str, each: "Iterator[Done]") -> None:
    """Show the first differences, and fail if there is any."""
    compared = different = 0
    rows: list[dict[str, str]] = []
    for one in each:
        compared += 1
        if one.outcome != "equal":
            different += 1
            if len(rows) < SHOWN_MAX:
                rows.append({"what": one.kind, "name": one.name, "difference": one.in_words})
    show(output, "differences", rows, compared=compared, different=different)
    if different:
        raise IllegalOperation(f"the stores differ in {different} of {compared} things")
