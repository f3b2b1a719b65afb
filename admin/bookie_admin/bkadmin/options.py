"""Options that several commands share, and what they lead to: the metadata store of a cluster, the directories of a
bookie.
"""

import functools
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from bookie.errors import IllegalOperation
from bookie.storage.layout import INDEX_NAME, current
from bookie.terminal.output import done
from bookie_admin.bkadmin.profiles import chosen, from_profile

if TYPE_CHECKING:
    from bookie.client import Security
    from bookie.metadata.bookies.identity import IdentitySettings
    from bookie.metadata.driver import MetadataDriver
    from bookie.server.configuration.settings import Settings

__all__ = [
    "bookie_files",
    "bookie_ids",
    "Cluster",
    "configured_identity",
    "configured_recovery",
    "COUNT",
    "Directories",
    "ID",
    "log_names",
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

COMPLETION_S = 1.0
"""How long a shell waits for words that complete an id."""
URI_DEFAULT = "grpc://127.0.0.1:3182"
ID = click.IntRange(0, (1 << 63) - 1)
"""A ledger id, an entry id or a position in a file: what fits in 63 bits on the wire."""
COUNT = click.IntRange(0, (1 << 31) - 1)
"""A number that Apache BookKeeper and the services of the admin port hold in 31 bits."""


class Seconds(click.FloatRange):
    """A duration in seconds, at most one day. It refuses `nan`, which every range of click accepts."""

    def __init__(self, low: float = 0.1, high: float = 86_400.0) -> None:
        super().__init__(low, high)

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> float:
        found = float(super().convert(value, param, context))
        if math.isnan(found):
            self.fail(f"{value} is not a number of seconds.", param, context)
        return found


with_output = click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "json", "yaml")),
    default="table",
    show_default=True,
    help="Output format.",
)
with_yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
with_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
_uri = click.option(
    "-u", "--metadata-service-uri", "uri", envvar="BOOKIE_METADATA_URI", metavar="URI",
    help="The metadata store: zk+hierarchical://host:2181/ledgers, or grpc://host:3182 for the admin port of a bookie"
    f" that holds it. Default: that of --conf, else {URI_DEFAULT}.  [env: BOOKIE_METADATA_URI]",
)  # fmt: skip
_conf = click.option(
    "--conf", envvar="BOOKIE_CONF", type=click.Path(path_type=Path, dir_okay=False),
    help="Path of a bookie's configuration file.  [env: BOOKIE_CONF]",
)  # fmt: skip
with_configuration = _conf


with_timeout = click.option(
    "--timeout", "timeout_s", type=Seconds(), default=10.0, show_default=True, metavar="SECONDS",
    help="How long to wait for each answer of a server.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster that the command line names.

    Attributes:
        uri: the value of --metadata-service-uri, or None.
        conf: the value of --conf, or None.
        timeout_s: how long to wait for an answer, in seconds.
        client_of_profile: the settings of the client in the profile.
    """

    uri: str | None
    conf: Path | None
    timeout_s: float
    client_of_profile: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def open(self, *, new: bool = False) -> Iterator["MetadataDriver"]:
        """Open the metadata store and yield its started driver.

        Args:
            new: allow creating an embedded store where there is none.

        Raises:
            ConfigurationError: the URI is invalid.
            IllegalOperation: an embedded store is named that does not exist, and `new` is false.
            MetadataStoreError: the store does not answer.
        """
        driver = self.driver(new=new)
        try:
            driver.start()
            yield driver
        finally:
            driver.stop()

    def driver(self, *, new: bool = False) -> "MetadataDriver":
        """Return a metadata driver that is not started. `new` and the errors of its start are those of `open`."""
        from bookie.metadata import open_driver  # noqa: PLC0415

        return open_driver(self.service_uri, session_timeout_ms=int(self.timeout_s * 1000), create=new)

    @property
    def client(self) -> dict[str, Any]:
        """The settings for a client of bookies: those of the configuration's own client, with TLS and authentication,
        those of the profile, and the timeouts of this command.
        """
        seconds = self.timeout_s
        waits = {"zkTimeout": seconds * 1000, "addEntryTimeoutSec": seconds, "readEntryTimeoutSec": seconds}
        return {**self._configured(), **waits}

    @property
    def security(self) -> "Security | None":
        """How connections to single bookies are encrypted and authenticated; None if they are neither."""
        keys = self._configured()
        if not keys:
            return None
        from bookie_admin.bookie_calls import security_of  # noqa: PLC0415

        return security_of(keys)

    def _configured(self) -> dict[str, Any]:
        if self.conf is None:
            return dict(self.client_of_profile)
        from bookie_admin.bookie_calls import client_settings  # noqa: PLC0415

        return client_settings(self.recovery)

    @property
    def recovery(self) -> dict[str, Any]:
        """The keys of auto-recovery and of its client: those of the configuration, and those of the profile."""
        return {**configured_recovery(self.conf), **self.client_of_profile}

    @property
    def service_uri(self) -> str:
        """The metadata service URI: the one given, else that of the configuration, else the default."""
        if self.uri is not None:
            return self.uri
        if self.conf is None:
            return URI_DEFAULT
        settings = settings_of(self.conf)
        found = settings.metadata.service_uri
        if not found.startswith("lmdb:"):
            return found
        # A running bookie has an embedded store open and serves it at its admin port.
        server, access = settings.server, settings.access
        scheme = "grpcs" if access.tls_certificate else "grpc"
        file = token_file_of(settings)
        token = f"?token={quote(file)}" if file else ""
        return f"{scheme}://{server.admin_host}:{server.admin_port}{token}"


def token_file_of(settings: "Settings") -> str:
    """Return the token file with which to authenticate to the bookie of this configuration.

    This is the bookie's own token if this process can read it; else the file of accepted tokens, whose first token may
    have too low a role. An empty string means that there is neither.
    """
    from bookie.admin_port.own_token import NAME  # noqa: PLC0415

    own = settings.storage.ledger_directories[0] / NAME
    return str(own) if os.access(own, os.R_OK) else settings.access.tokens_file


def bookie_ids(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the id of a bookie, the last one of a list with commas: all that are registered or have a cookie."""
    head, comma, last = begun.rpartition(",")
    found = _completed(context, last, lambda driver: driver.bookies.known() | driver.bookies.present(read_only=False))
    return [head + comma + name for name in found]


def log_names(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the name of a log."""
    return _completed(context, begun, lambda driver: {name for names in driver.logs.names() for name in names})


def _completed(context: click.Context, begun: str, known: "Callable[[MetadataDriver], Collection[str]]") -> list[str]:
    """Return the known words that go on like this; none if the metadata store does not answer at once."""
    given, profile = context.params, chosen(context)
    uri = given.get("uri") or (
        profile.options.get("metadata-service-uri") if profile else os.environ.get("BOOKIE_METADATA_URI")
    )
    cluster = Cluster(uri, given.get("conf"), COMPLETION_S)
    with suppress(Exception), cluster.open() as driver:  # a shell shows nothing but words
        return sorted(word for word in known(driver) if word.startswith(begun))
    return []


def with_cluster(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a cluster; the command receives them as `cluster`."""

    @functools.wraps(function)
    def with_it(*args: Any, uri: str | None, conf: Path | None, timeout_s: float, **options: Any) -> None:
        uri = from_profile("uri", "metadata-service-uri", uri)
        conf = from_profile("conf", "conf", conf)
        profile = chosen()
        function(*args, cluster=Cluster(uri, conf, timeout_s, profile.client if profile else {}), **options)

    return _uri(_conf(with_timeout(with_it)))


def with_changes(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that change the metadata of many ledgers."""
    for option in (
        click.option("-s", "--updatespersec", "per_s", type=click.IntRange(min=1), default=5, show_default=True,
                     help="Maximum number of changes per second."),
        click.option("-l", "--limit", type=click.IntRange(min=1), help="Stop after changing this many ledgers."),
        click.option("--dry-run", is_flag=True, help="Count the ledgers, and change nothing."),
    ):  # fmt: skip
        function = option(function)
    return function


def sure(question: str, *, yes: bool, dry_run: bool = False, output: str = "table") -> bool:
    """Ask for confirmation and return True, unless `yes` skips the question or `dry_run` is set.

    Args:
        question: what is about to be done, as a question that ends with "?".
        yes: do not ask.
        dry_run: print what would be done instead, and return False.
        output: the output format of that print.

    Raises:
        click.Abort: the answer is no, or standard input cannot be read.
    """
    if dry_run:
        would = f"would {question.partition('?')[0]}"
        done(output, would, dry_run=would)
        return False
    if not yes:
        click.confirm(question, abort=True, err=True)
    return True


def settings_of(conf: Path) -> "Settings":
    """Return the settings of a bookie's configuration file, with overrides from the environment.

    Raises:
        StartRefused: the file cannot be read, or a key in it is invalid.
    """
    from bookie.server.configuration.loader import load  # noqa: PLC0415

    return load(conf, os.environ).settings


@dataclass(frozen=True, slots=True)
class Directories:
    """The directories of a bookie as configured. The bookie keeps its files in `current` below each of them."""

    journals: tuple[Path, ...]
    ledgers: tuple[Path, ...]
    indexes: tuple[Path, ...]

    @property
    def all(self) -> tuple[Path, ...]:
        """All directories, without duplicates."""
        return tuple(dict.fromkeys((*self.journals, *self.ledgers, *self.indexes)))

    def index(self, position: int) -> Path:
        """Return the path of the location index of the ledger directory at `position`."""
        return current(self.indexes[position]) / INDEX_NAME

    def position(self, ledger: int) -> int:
        """Return the position of the ledger directory to which a ledger belongs."""
        return ledger % len(self.ledgers)

    def file(self, name: str, suffix: str, *, journal: bool = False) -> Path:
        """Return the path of an entry log or journal file, given as a path or as its id in hexadecimal.

        Raises:
            IllegalOperation: there is no such file.
        """
        if Path(name).is_file():
            return Path(name)
        stem = name.removesuffix(suffix)
        for directory in self.journals if journal else self.ledgers:
            path = current(directory) / f"{stem}{suffix}"
            if path.is_file():
                return path
        raise IllegalOperation(f"{name}: no such file, and no {stem}{suffix} in this bookie's directories")


def configured_identity(conf: Path | None) -> "IdentitySettings":
    """Return the identity settings of a bookie's configuration.

    Raises:
        IllegalOperation: no configuration is named.
        StartRefused: the configuration is invalid.
    """
    if conf is None:
        raise IllegalOperation("no bookie is named; name its configuration file with --conf or in BOOKIE_CONF")
    return settings_of(conf).identity


def configured_recovery(conf: Path | None) -> Mapping[str, Any]:
    """Return the keys of a configuration for auto-recovery and for the client that it uses; none without a
    configuration.
    """
    return {} if conf is None else dict(settings_of(conf).recovery.keys)


def bookie_files(conf: Path | None) -> Directories:
    """Return the directories of a bookie's configuration.

    Raises:
        IllegalOperation: no configuration is named.
        StartRefused: the configuration is invalid.
    """
    if conf is None:
        raise IllegalOperation("no bookie is named; name its configuration file with --conf or in BOOKIE_CONF")
    settings = settings_of(conf)
    storage = settings.storage
    return Directories(settings.journal.directories, storage.ledger_directories, storage.index_directories)
