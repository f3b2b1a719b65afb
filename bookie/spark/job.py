"""What all jobs of `bkpipe` share: dry run, progress, summary, resumable units of work, and options for Spark and the
cluster.

    @click.command()
    @with_cluster
    @with_spark
    @with_job
    def command(job: Job, cluster: Cluster, spark: Sessions, ...) -> int:
        with job.open(uri=cluster.uri) as state, spark.open(job.name) as session:
            for unit in job.left(units, "ledgers"):
                state.note(unit, entries=...)
        return job.end(findings=0)

pyspark is imported when a session is opened, not by this module.
"""

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bookie.durable import write_file
from bookie.errors import IllegalOperation
from bookie.spark.job_options import client_option, conf_option, password_option, uri_option
from bookie.spark.sessions import Sessions
from bookie.spark.state import State
from bookie.terminal.lazy import EXIT_PARTIAL
from bookie.terminal.output import progress_bar, show

if TYPE_CHECKING:
    from bookie.client import BookKeeper

__all__ = ["Cluster", "Job", "with_cluster", "with_job", "with_spark"]

Row = Mapping[str, Any]


@dataclass(slots=True)
class Job:
    """One call of a job. Used by one thread.

    Attributes:
        name: the name of the job.
        dry_run: only show what would be done.
        output: format of the summary on standard output.
        summary_file: where to write the summary as JSON, or None.
        state_directory: where finished units are recorded, or None.
    """

    name: str
    dry_run: bool
    output: str
    summary_file: Path | None
    state_directory: Path | None
    _began: float = field(default_factory=time.monotonic)
    _state: State | None = None

    @contextmanager
    def open(self, **options: Any) -> Iterator[State]:
        """Open the state of the job and yield it.

        A dry run reads the state of a directory if there is one, and creates none.

        Args:
            options: the options that must be the same for a later call to continue this one.

        Raises:
            IllegalOperation: the directory has the state of another call, or is in use.
        """
        directory = self.state_directory
        if self.dry_run and directory is not None and not (directory / "job.json").exists():
            directory = None
        with State(directory, self.name, options) as state:
            self._state = state
            yield state

    def left(self, units: Sequence[str], label: str) -> Iterator[str]:
        """Yield the units that are not done yet, and show a progress bar.

        Args:
            units: all units of the job, in their order.
            label: the label of the progress bar.
        """
        state = self._state
        assert state is not None, "inside of `open`"
        with self.progress(label) as tell:
            for place, unit in enumerate(units):
                tell(place, len(units))
                if unit not in state.done:
                    yield unit
            tell(len(units), len(units))

    @contextmanager
    def progress(self, label: str) -> Iterator[Callable[[float, float], None]]:
        """Show a progress bar if standard error is a terminal; yield a function to call with (done, total)."""
        with progress_bar(label) as tell:
            yield tell

    def end(self, rows: Iterable[Row] | None = None, *, called: str = "rows", well: bool = True, **facts: Any) -> int:
        """Print and write the summary, and return the exit code.

        Args:
            rows: rows of a table to show, if any.
            called: the name of that table.
            well: False if the result is partial or a problem was found.
            facts: single values for the summary.

        Returns:
            0, or 3 if not `well`.
        """
        listed = None if rows is None else [dict(row) for row in rows]
        code = 0 if well else EXIT_PARTIAL
        summary: dict[str, Any] = {
            "job": self.name,
            "status": "planned" if self.dry_run else "done" if well else "partial",
            "exit_code": code,
            "seconds": round(time.monotonic() - self._began, 3),
            "resumed_units": self._state.found if self._state else 0,
            **facts,
        }
        if self.summary_file:
            whole = summary if listed is None else {**summary, called: listed}
            write_file(self.summary_file, json.dumps(whole, indent=2, default=str).encode() + b"\n")
        show(self.output, called, listed, **summary)
        return code


def with_job(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that every job has; the command receives them as `job`."""

    @click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
    @click.option(
        "--state",
        "state_directory",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory in which to record finished work, so that the same call can continue it.",
    )
    @click.option(
        "--summary",
        "summary_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the summary to this file as JSON.",
    )
    @click.option(
        "-o",
        "--output",
        type=click.Choice(("table", "json", "yaml")),
        default="table",
        show_default=True,
        help="Format of the summary on standard output.",
    )
    @functools.wraps(function)
    def with_it(
        *args: Any, dry_run: bool, output: str, summary_file: Path | None, state_directory: Path | None, **options: Any
    ) -> int:
        name = click.get_current_context().info_name or function.__name__
        return function(*args, job=Job(name, dry_run, output, summary_file, state_directory), **options)

    return with_it


def with_spark(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say where Spark runs; the command receives them as `spark`."""

    @click.option(
        "--master",
        envvar="SPARK_MASTER",
        default="local[*]",
        show_default=True,
        metavar="URL",
        help="Master URL of Spark: local[N], spark://host:7077, yarn.  [env: SPARK_MASTER]",
    )
    @conf_option
    @functools.wraps(function)
    def with_it(*args: Any, master: str, conf: Mapping[str, str], **options: Any) -> int:
        return function(*args, spark=Sessions(master, conf), **options)

    return with_it


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as the command line names it.

    Attributes:
        uri: its metadata service URI.
        settings: settings of the client.
        password: the password of its ledgers.
    """

    uri: str
    settings: Mapping[str, str]
    password: str = field(repr=False)

    def client(self) -> "BookKeeper":
        """Return a client of the cluster, to be used as a context manager."""
        from bookie.client import BookKeeper  # noqa: PLC0415  # --help does not need the client

        return BookKeeper(self.uri, **dict(self.settings))

    def options(self, **more: str) -> dict[str, str]:
        """Return the options of the cluster for `format("bookkeeper")` and the other formats, and `more`."""
        settings = {f"bookkeeper.{key}": value for key, value in self.settings.items()}
        return {"metadataServiceUri": self.uri, "password": self.password, **settings, **more}


def with_cluster(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that name a cluster; the command receives them as `cluster`."""

    @uri_option(
        "zk+hierarchical://h1:2181;h2:2181/ledgers, or grpc://host:3182 for the admin port of a bookie that holds it"
    )
    @client_option
    @password_option("Password of the ledgers")
    @functools.wraps(function)
    def with_it(*args: Any, uri: str | None, client_settings: Mapping[str, str], password: str, **options: Any) -> int:
        if uri is None:
            raise IllegalOperation("no cluster is named; name its metadata store with -u or in BOOKIE_METADATA_URI")
        return function(*args, cluster=Cluster(uri, client_settings, password), **options)

    return with_it
