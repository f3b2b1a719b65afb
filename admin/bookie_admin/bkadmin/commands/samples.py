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


def _samples() -> dict[str, Path]:
    """Return the sample files by name."""
    root = directory()
    return {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}


def _names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the name of a sample file."""
    return [name for name in _samples() if name.startswith(begun)]


@click.command()
@click.argument("name", required=False, shell_complete=_names)
@with_output
def command(*, name: str | None, output: str) -> None:
    """List the sample files that are installed with the package, or print the one with this NAME: configurations,
    a systemd unit, manifests for Kubernetes, dashboards for Grafana, alert rules for Prometheus.

    \b
    EXAMPLES
      bkadmin samples
      bkadmin samples bk.conf > bk.conf
    """
    found = _samples()
    if name is None:
        show(output, "samples", [{"name": key, "bytes": Bytes(path.stat().st_size)} for key, path in found.items()])
    elif name in found:
        text = found[name].read_text()
        done(output, text.rstrip("\n"), name=name, content=text)
    else:
        raise IncorrectParameter(f"there is no sample {name!r}; `bkadmin samples` lists all: {', '.join(found)}")
