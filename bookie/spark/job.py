"""What every job of `bkpipe` has: a dry run, progress, a summary, units of work that are done once, Spark, a cluster.

    @click.command()
    @with_cluster
    @with_spark
    @with_job
    def command(job: Job, cluster: Cluster, spark: Sessions, ...) -> int:
        with job.open(uri=cluster.uri) as state, spark.open(job.name) as session:
            for unit in job.left(units, "ledgers"):
                state.note(unit, entries=...)
        return job.end(findings=0)

pyspark is loaded by what opens a session, and by nothing here.
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
    """One call of a job. One thread."""

    name: str
    dry_run: bool
    output: str
    summary_file: Path | None
    state_directory: Path | None
    _began: float = field(default_factory=time.monotonic)
    _state: State | None = None

    @contextmanager
    def open(self, **asked: Any) -> Iterator[State]:
        """Its state. `asked`: what must be the same for a later call to go on. IllegalOperation: it is not.

        A dry run only looks: the state of a directory is read where there is one, and none is made.
        """
        directory = self.state_directory
        if self.dry_run and directory is not None and not (directory / "job.json").exists():
            directory = None
        with State(directory, self.name, asked) as state:
            self._state = state
            yield state

    def left(self, units: Sequence[str], label: str) -> Iterator[str]:
        """Those that are not done yet, one by one, behind a progress bar."""
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
        """A bar where standard error is a terminal: call it with (done, in all)."""
        with progress_bar(label) as tell:
            yield tell

    def end(self, rows: Iterable[Row] | None = None, *, called: str = "rows", well: bool = True, **facts: Any) -> int:
        """Tell what was done, or would be; the exit code. `well`: False where a part is not done, or not well."""
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
    """Options that every job has; the command gets them as `job`."""

    @click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
    @click.option(
        "--state",
        "state_directory",
        type=click.Path(path_type=Path, file_okay=False),
        help="Where to note what is done: the same call again goes on from there.",
    )
    @click.option(
        "--summary",
        "summary_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the summary there, as JSON.",
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
    """Options that say where Spark runs; the command gets them as `spark`."""

    @click.option(
        "--master",
        envvar="SPARK_MASTER",
        default="local[*]",
        show_default=True,
        metavar="URL",
        help="Where Spark runs: local[N], spark://host:7077, yarn.  [env: SPARK_MASTER]",
    )
    @conf_option
    @functools.wraps(function)
    def with_it(*args: Any, master: str, conf: Mapping[str, str], **options: Any) -> int:
        return function(*args, spark=Sessions(master, conf), **options)

    return with_it


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster, and how to speak to it. `settings`: the client's."""

    uri: str
    settings: Mapping[str, str]
    password: str = field(repr=False)

    def client(self) -> "BookKeeper":
        """A client of it, to be entered."""
        from bookie.client import BookKeeper  # noqa: PLC0415  # help loads no client

        return BookKeeper(self.uri, **dict(self.settings))

    def options(self, **more: str) -> dict[str, str]:
        """For Spark's `format("bookkeeper")` and its kin."""
        settings = {f"bookkeeper.{key}": value for key, value in self.settings.items()}
        return {"metadataServiceUri": self.uri, "password": self.password, **settings, **more}


def with_cluster(function: Callable[..., int]) -> Callable[..., int]:
    """Options that say which cluster; the command gets them as `cluster`."""

    @uri_option("zk+hierarchical://h1:2181;h2:2181/ledgers, or grpc://host:3182 of a bookie that holds it")
    @client_option
    @password_option("The password of the ledgers")
    @functools.wraps(function)
    def with_it(*args: Any, uri: str | None, client_settings: Mapping[str, str], password: str, **options: Any) -> int:
        if uri is None:
            raise IllegalOperation("which cluster? name its metadata with -u, or in BOOKIE_METADATA_URI")
        return function(*args, cluster=Cluster(uri, client_settings, password), **options)

    return with_it
