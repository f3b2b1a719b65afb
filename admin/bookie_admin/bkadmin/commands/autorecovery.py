"""`bkadmin autorecovery`: run auto-recovery in this process, or enable or disable it."""

import logging
import os
import socket
from pathlib import Path

import click

from bookie.terminal.output import done
from bookie_admin.bkadmin.auditor import warn_without_auditor
from bookie_admin.bkadmin.options import Cluster, settings_of, with_cluster, with_output


@click.command()
@click.option("-e", "--enable", "wish", flag_value="enable", help="Enable auto-recovery in the entire cluster.")
@click.option(
    "-d",
    "--disable",
    "wish",
    flag_value="disable",
    help="Disable it in the entire cluster, for example during planned restarts.",
)
@click.option("-s", "--status", "wish", flag_value="status", help="Show whether it is enabled.")
@click.option("--name", help="Name under which this process takes part. Default: host name and process id.")
@with_cluster
@with_output
def command(*, wish: str | None, name: str | None, cluster: Cluster, output: str) -> None:
    """Run auto-recovery in this process until SIGTERM: it is a candidate for auditor, and a replication worker.

    Its settings are taken from --conf. With -e, -d or -s, the command switches auto-recovery of the entire cluster or
    shows its state, and ends.
    """
    if wish is None:
        from bookie.client.replication.service import run_alone  # noqa: PLC0415

        log_to_stderr(cluster.conf)
        click.echo("auto-recovery is running; stop it with SIGTERM or Ctrl-C", err=True)
        run_alone(name or f"{socket.gethostname()}:{os.getpid()}", cluster.service_uri, cluster.recovery)
        return
    with cluster.open() as driver:
        if wish != "status":
            driver.replication.enable(enabled=wish == "enable")
        enabled = driver.replication.enabled()
        if enabled:
            warn_without_auditor(driver)
    done(output, f"auto-recovery is {'enabled' if enabled else 'disabled'}", enabled=enabled)


def log_to_stderr(conf: Path | None) -> None:
    """Log to standard error in the format and at the level of the configuration, because logs are the only output of
    this process.
    """
    from bookie.server.configuration.settings import ServerSettings  # noqa: PLC0415
    from bookie.server.logs import formats  # noqa: PLC0415

    server = ServerSettings() if conf is None else settings_of(conf).server
    logging.getLogger("bookie").setLevel(logging.NOTSET)
    formats.configure(server.log_format, server.log_level)
