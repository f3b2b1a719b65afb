"""`bkadmin autorecovery`."""

import logging
import os
import socket
from pathlib import Path

import click

from admin.bkadmin.options import Cluster, configured_recovery, settings_of, with_cluster, with_output
from bookie.terminal.output import done


@click.command()
@click.option("-e", "--enable", "wish", flag_value="enable", help="Let all replicators of the cluster go on.")
@click.option("-d", "--disable", "wish", flag_value="disable", help="Stop them: for planned restarts.")
@click.option("-s", "--status", "wish", flag_value="status", help="Tell whether it is on.")
@click.option("--name", help="Of this process, when it runs; else host and process id.")
@with_cluster
@with_output
def command(*, wish: str | None, name: str | None, cluster: Cluster, output: str) -> None:
    """Run auto-recovery in this process, until SIGTERM: a candidate for auditor, and a worker.

    Its settings are those of --conf. With an option: switch it on or off for the whole cluster, or tell how it stands.
    """
    if wish is None:
        from bookie.client.replication.service import run_alone  # noqa: PLC0415

        log_to_stderr(cluster.conf)
        click.echo("auto-recovery runs; SIGTERM or Ctrl-C ends it", err=True)
        run_alone(
            name or f"{socket.gethostname()}:{os.getpid()}", cluster.service_uri, configured_recovery(cluster.conf)
        )
        return
    with cluster.open() as driver:
        if wish != "status":
            driver.replication.enable(enabled=wish == "enable")
        enabled = driver.replication.enabled()
    done(output, f"auto-recovery is {'on' if enabled else 'off'}", enabled=enabled)


def log_to_stderr(conf: Path | None) -> None:
    """As a bookie does, with what its configuration says: nobody else tells what this process is doing."""
    from bookie.server.configuration.settings import ServerSettings  # noqa: PLC0415
    from bookie.server.logs import formats  # noqa: PLC0415

    server = ServerSettings() if conf is None else settings_of(conf).server
    logging.getLogger("bookie").setLevel(logging.NOTSET)
    formats.configure(server.log_format, server.log_level)
