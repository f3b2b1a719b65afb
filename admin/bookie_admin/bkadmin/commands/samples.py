"""`bkadmin samples`: the sample files that are installed with the package."""

from pathlib import Path

import click

import bookie
from bookie.errors import IncorrectParameter
from bookie.terminal.output import Bytes, done, show
from bookie_admin.bkadmin.options import with_output


def directory() -> Path:
    """Return the directory of the sample files: beside the code in an installed package, `conf` in a repository."""
    code = Path(bookie.__file__).parent
    installed = code / "samples"
    return installed if installed.is_dir() else code.parent / "conf"


@click.command()
@click.argument("name", required=False)
@with_output
def command(*, name: str | None, output: str) -> None:
    """List the sample files that are installed with the package, or print the one with this NAME: configurations,
    a systemd unit, manifests for Kubernetes, dashboards for Grafana, alert rules for Prometheus.

    \b
    EXAMPLES
      bkadmin samples
      bkadmin samples bk.conf > bk.conf
    """
    found = {
        path.relative_to(directory()).as_posix(): path for path in sorted(directory().rglob("*")) if path.is_file()
    }
    if name is None:
        show(output, "samples", [{"name": key, "bytes": Bytes(path.stat().st_size)} for key, path in found.items()])
    elif name in found:
        text = found[name].read_text()
        done(output, text.rstrip("\n"), name=name, content=text)
    else:
        raise IncorrectParameter(f"there is no sample {name!r}; `bkadmin samples` lists all: {', '.join(found)}")
