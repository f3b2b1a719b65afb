"""`bkadmin endpointinfo`: show the endpoints and properties that a bookie has registered."""

import click

from bookie.errors import BookieUnavailable
from bookie.terminal.output import show
from bookie_admin.bkadmin.options import Cluster, bookie_ids, with_cluster, with_output


@click.command()
@click.argument("bookie", shell_complete=bookie_ids)
@with_cluster
@with_output
def command(*, bookie: str, cluster: Cluster, output: str) -> None:
    """Show the endpoints and properties that BOOKIE (its id) has registered in the metadata store."""
    from bookie.metadata.bookies.service_info import parse_service_info  # noqa: PLC0415

    with cluster.open() as driver:
        data = driver.bookies.info(bookie)
    if data is None:
        raise BookieUnavailable(f"bookie {bookie} is not registered; bkadmin listbookies lists those that are")
    info = parse_service_info(bookie, data)
    rows = [
        {
            "id": end.id,
            "protocol": end.protocol,
            "host": end.host,
            "port": end.port,
            "auth": list(end.auth),
            "extensions": list(end.extensions),
        }
        for end in info.endpoints
    ]
    show(output, "endpoints", rows, bookie=bookie, properties=dict(info.properties))
