"""Options that commands share, and what they lead to: the metadata store of a cluster, the directories of a bookie."""

import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from bookie.errors import IllegalOperation
from bookie.storage.layout import INDEX_NAME, current
from bookie.terminal.output import done

if TYPE_CHECKING:
    from bookie.metadata.bookies.identity import IdentitySettings
    from bookie.metadata.driver import MetadataDriver
    from bookie.server.configuration.settings import Settings

__all__ = [
    "bookie_files",
    "Cluster",
    "configured_identity",
    "configured_recovery",
    "COUNT",
    "Directories",
    "ID",
    "Seconds",
    "settings_of",
    "sure",
    "token_file_of",
    "with_changes",
    "with_cluster",
    "with_configuration",
    "with_dry_run",
    "with_output",
    "with_timeout",
    "with_yes",
]

URI_DEFAULT = "grpc://127.0.0.1:3182"
EMBEDDED_FILE = "data.mdb"
"""What LMDB calls its file."""

ID = click.IntRange(0, (1 << 63) - 1)
"""Of a ledger or an entry, and places in files: what 64 bits hold on the wire."""
COUNT = click.IntRange(0, (1 << 31) - 1)
"""What upstream and our services hold in 32 bits."""


class Seconds(click.FloatRange):
    """A time that a clock can wait for: no `nan`, which is in every range, and a day at most."""

    def __init__(self, low: float = 0.1, high: float = 86_400.0) -> None:
        super().__init__(low, high)

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> float:
        """UsageError."""
        found = float(super().convert(value, param, context))
        if math.isnan(found):
            self.fail(f"{value} is no number of seconds.", param, context)
        return found


with_output = click.option(
    "-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True, help="Format."
)
with_yes = click.option("--yes", is_flag=True, help="Do it without asking.")
with_dry_run = click.option("--dry-run", is_flag=True, help="Only look, and tell what would be done.")
_uri = click.option(
    "-u", "--metadata-service-uri", "uri", envvar="BOOKIE_METADATA_URI", metavar="URI",
    help="The cluster's metadata: zk+hierarchical://host:2181/ledgers, or grpc://host:3182 of a bookie that holds it."
    f" Else what the configuration says, else {URI_DEFAULT}.  [env: BOOKIE_METADATA_URI]",
)  # fmt: skip
_conf = click.option(
    "--conf", envvar="BOOKIE_CONF", type=click.Path(path_type=Path, dir_okay=False),
    help="A bookie's configuration file.  [env: BOOKIE_CONF]",
)  # fmt: skip
with_configuration = _conf


with_timeout = click.option(
    "--timeout", "timeout_s", type=Seconds(), default=10.0, show_default=True, metavar="SECONDS",
    help="How long to wait for an answer.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster, as the command line has it."""

    uri: str | None
    conf: Path | None
    timeout_s: float

    @contextmanager
    def open(self, *, new: bool = False) -> Iterator["MetadataDriver"]:
        """The started driver of its metadata store. MetadataStoreError when nobody answers. `new`: as for `driver`."""
        driver = self.driver(new=new)
        try:
            driver.start()
            yield driver
        finally:
            driver.stop()

    def driver(self, *, new: bool = False) -> "MetadataDriver":
        """One that is not started. ConfigurationError. `new`: a store in a directory may be made; else IllegalOperation
        where there is none, for the store would make it to be looked at.
        """
        from bookie.metadata import open_driver  # noqa: PLC0415
        from bookie.metadata.uri import parse_uri  # noqa: PLC0415

        where = parse_uri(self.service_uri)
        if where.scheme == "lmdb" and not new and not Path(where.path, EMBEDDED_FILE).exists():
            raise IllegalOperation(f"{self.service_uri}: no metadata store is there; name the directory of one")
        return open_driver(self.service_uri, session_timeout_ms=int(self.timeout_s * 1000))

    @property
    def waits(self) -> dict[str, float]:
        """How long a client of ours waits for answers, as its settings."""
        seconds = self.timeout_s
        return {"zkTimeout": seconds * 1000, "addEntryTimeoutSec": seconds, "readEntryTimeoutSec": seconds}

    @property
    def service_uri(self) -> str:
        """Where its metadata is."""
        if self.uri is not None:
            return self.uri
        if self.conf is None:
            return URI_DEFAULT
        settings = settings_of(self.conf)
        found = settings.metadata.service_uri
        if not found.startswith("lmdb:"):
            return found
        # A running bookie has that store open, and serves it at its admin port.
        server, access = settings.server, settings.access
        scheme = "grpcs" if access.tls_certificate else "grpc"
        file = token_file_of(settings)
        token = f"?token={quote(file)}" if file else ""
        return f"{scheme}://{server.admin_host}:{server.admin_port}{token}"


def token_file_of(settings: "Settings") -> str:
    """What to show to the bookie of this configuration: its own token, if we may read it; else what its file of tokens
    has, perhaps with a role that is too low. Empty: neither.
    """
    from bookie.admin_port.own_token import NAME  # noqa: PLC0415

    own = settings.storage.ledger_directories[0] / NAME
    return str(own) if os.access(own, os.R_OK) else settings.access.tokens_file


def with_cluster(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say which cluster; the command gets them as `cluster`."""

    @functools.wraps(function)
    def with_it(*args: Any, uri: str | None, conf: Path | None, timeout_s: float, **options: Any) -> None:
        function(*args, cluster=Cluster(uri, conf, timeout_s), **options)

    return _uri(_conf(with_timeout(with_it)))


def with_changes(function: Callable[..., None]) -> Callable[..., None]:
    """Options of commands that change the metadata of many ledgers."""
    for option in (
        click.option("-s", "--updatespersec", "per_s", type=click.IntRange(min=1), default=5, show_default=True,
                     help="Changes a second, at most."),
        click.option("-l", "--limit", type=click.IntRange(min=1), help="Change so many ledgers, then end."),
        click.option("--dry-run", is_flag=True, help="Only count them."),
    ):  # fmt: skip
        function = option(function)
    return function


def sure(question: str, *, yes: bool, dry_run: bool = False, output: str = "table") -> bool:
    """Ask, unless `yes`. Aborts on no, and where nobody can be asked. `dry_run`: tell it instead; then False."""
    if dry_run:
        would = f"would {question.partition('?')[0]}"
        done(output, would, dry_run=would)
        return False
    if not yes:
        click.confirm(question, abort=True, err=True)
    return True


def settings_of(conf: Path) -> "Settings":
    """What a bookie's configuration says. StartRefused."""
    from bookie.server.configuration.loader import load  # noqa: PLC0415

    return load(conf, os.environ).settings


@dataclass(frozen=True, slots=True)
class Directories:
    """A bookie's directories as they are configured; the bookie works in `current` below each."""

    journals: tuple[Path, ...]
    ledgers: tuple[Path, ...]
    indexes: tuple[Path, ...]

    @property
    def all(self) -> tuple[Path, ...]:
        """Each once."""
        return tuple(dict.fromkeys((*self.journals, *self.ledgers, *self.indexes)))

    def index(self, position: int) -> Path:
        """The location index of a ledger directory."""
        return current(self.indexes[position]) / INDEX_NAME

    def position(self, ledger: int) -> int:
        """The ledger directory that a ledger lives in."""
        return ledger % len(self.ledgers)

    def file(self, name: str, suffix: str, *, journal: bool = False) -> Path:
        """A log or journal file by its path, or by its id in hexadecimal. IllegalOperation if it is not there."""
        if Path(name).is_file():
            return Path(name)
        stem = name.removesuffix(suffix)
        for directory in self.journals if journal else self.ledgers:
            path = current(directory) / f"{stem}{suffix}"
            if path.is_file():
                return path
        raise IllegalOperation(f"{name}: no such file, and no {stem}{suffix} in this bookie's directories")


def configured_identity(conf: Path | None) -> "IdentitySettings":
    """What a configuration says about who its bookie is. IllegalOperation without one."""
    if conf is None:
        raise IllegalOperation("which bookie? name its configuration with --conf, or in BOOKIE_CONF")
    return settings_of(conf).identity


def configured_recovery(conf: Path | None) -> Mapping[str, Any]:
    """What a configuration says about auto-recovery and the client below it."""
    return {} if conf is None else dict(settings_of(conf).recovery.keys)


def bookie_files(conf: Path | None) -> Directories:
    """Those of the configuration. IllegalOperation without one."""
    if conf is None:
        raise IllegalOperation("whose files? name the bookie's configuration with --conf, or in BOOKIE_CONF")
    settings = settings_of(conf)
    storage = settings.storage
    return Directories(settings.journal.directories, storage.ledger_directories, storage.index_directories)
