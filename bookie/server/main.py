"""The command `bookie-server`: load, start, wait, stop, and the exit code that says how it went."""

import contextlib
import logging
import os
import resource
import sys
import threading
from pathlib import Path

import click

from bookie import __version__
from bookie._fast.base import fatal, spare_descriptors
from bookie.errors import BookKeeperError, IllegalOperation, StartRefused
from bookie.metadata import open_driver
from bookie.server.configuration.errors import one_line
from bookie.server.configuration.loader import Loaded, load
from bookie.server.configuration.reference import render
from bookie.server.lifecycle import Addresses, Bookie
from bookie.server.logs import formats
from bookie.server.process import signals
from bookie.server.process.notify import notify
from bookie.server.process.supervisor import EXIT_BOOKIE_FAILED, Supervisor

__all__ = ["main"]

log = logging.getLogger("bookie.server")  # run as a command, this module is called __main__

EXIT_UNEXPECTED = 2
NOBODY_ELSE = 0o077
"""What a bookie writes is for itself, libraries' files included; its own name their modes themselves."""
SPIN_VARIABLE = "BOOKIE_SPIN_THREADS"
STORAGE_DESCRIPTORS = 1024
"""At most; a quarter where the system allows few."""

DESCRIPTION = """Run one bookie: a server that keeps ledgers, entry by entry, for Apache BookKeeper's clients.

The configuration is a properties file with Apache BookKeeper's key names; environment variables BK_KEY override it.
docs/configuration.md lists every key, its default and its range, as does --keys.

\b
SIGNALS
  SIGTERM, SIGINT   stop: leave the registration, answer what is outstanding,
                    flush, close, exit 0; again: do not wait for answers;
                    a third time: end at once (the journal has everything)

\b
EXIT CODES
  0  stopped as asked                      3  metadata session expired for good
  1  bad input, nothing was changed        4  another process is registered
  2  anything unexpected, stop took too    5  the bookie failed: write or sync
     long                                     error, dead thread

\b
ENVIRONMENT
  BOOKIE_CONF          the file, where --conf is not given
  BK_KEY               overrides KEY of the file, e.g. BK_bookiePort=3999
  NOTIFY_SOCKET        as systemd sets it: told when clients are served,
                       when it stops, and, with WATCHDOG_USEC, that it lives
  BOOKIE_SPIN_THREADS  so many Python threads that only burn CPU; for
                       measurements of the data path, never in production

\b
EXAMPLES
  bookie-server --conf conf/standalone.conf
  BK_bookiePort=3999 bookie-server --conf bk.conf --check
  bookie-server --conf bk.conf --init-cluster   once for each cluster
"""


@click.command(help=DESCRIPTION, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--conf", type=click.Path(path_type=Path), envvar="BOOKIE_CONF", help="The configuration file.")
@click.option("--check", is_flag=True, help="Check the configuration, and the files of tokens and certificates that it"
              " names; start nothing; exit 0 or 1.")  # fmt: skip
@click.option("--init-cluster", is_flag=True, help="Create a new cluster in the metadata store, start nothing.")
@click.option("--keys", is_flag=True, help="Print all keys as in docs/configuration.md.")
@click.option("--ready-fd", type=click.IntRange(1), metavar="N", help="Once clients are served, write the line"
              " `HOST:PORT id=BOOKIE-ID admin=HOST:PORT` into this inherited descriptor and close it.")  # fmt: skip
@click.version_option(__version__, "--version", "-V", prog_name="bookie-server")
def main(conf: Path | None, *, check: bool, init_cluster: bool, keys: bool, ready_fd: int | None) -> None:
    if keys:
        click.echo(render(), nl=False)
        return
    os.umask(NOBODY_ELSE)
    try:
        loaded = load(conf, os.environ)
    except BookKeeperError as error:
        click.echo(f"bookie-server: {one_line(error)}", err=True)
        sys.exit(error.exit_code)
    formats.configure(loaded.settings.server.log_format, loaded.settings.server.log_level)
    for notice in loaded.notices:
        log.log(notice.level, notice.text)
    if check:
        sys.exit(_check(loaded))
    sys.exit(_init_cluster(loaded) if init_cluster else _serve(loaded, ready_fd))


def _check(loaded: Loaded) -> int:
    try:
        bookie = Bookie(loaded.settings, Supervisor(), lambda _: None)
        bookie.check()
    except BookKeeperError as error:
        return _refused(error)
    click.echo(f"configuration of {bookie.bookie_id} is right")
    return 0


def _init_cluster(loaded: Loaded) -> int:
    """Once for each cluster; one that exists already is left as it is, and refused."""
    settings = loaded.settings.metadata
    try:
        driver = open_driver(settings.service_uri, session_timeout_ms=settings.session_timeout_ms)
        driver.start()
        try:
            instance_id = driver.cluster.initialize()
        finally:
            driver.stop()
    except IllegalOperation as error:
        return _refused(StartRefused(f"{one_line(error)}; nothing was changed"))
    except BookKeeperError as error:
        return _refused(error)
    click.echo(f"new cluster {instance_id} at {settings.service_uri}")
    return 0


def _serve(loaded: Loaded, ready_fd: int | None) -> int:
    server = loaded.settings.server
    sys.setswitchinterval(server.switch_interval_us / 1e6)
    _allow_descriptors()
    supervisor = Supervisor()
    supervisor.start()
    stop = signals.Stop(lambda: supervisor.limit(server.shutdown_timeout_ms / 1000))

    def give_up(error: BookKeeperError) -> None:
        log.critical(one_line(error), extra={"exit_code": error.exit_code})
        stop.request(error.exit_code)

    try:
        bookie = Bookie(loaded.settings, supervisor, give_up)
        signals.install(stop, bookie.hurry)
        log.info("settings that were given", extra=dict(loaded.given))
        log.info("starting", extra={"version": __version__, "pid": os.getpid(), "bookie_id": bookie.bookie_id})
        _announce(bookie, _start(bookie, stop), ready_fd)
        code = stop.wait()
        notify("STOPPING=1")
        log.info("stopping")
        _stop(bookie)
    except signals.StopRequested:
        log.info("stopped before the start was finished")
        return stop.wait()
    except BookKeeperError as error:
        return _refused(error)
    except Exception:
        log.critical("unexpected failure", exc_info=True)
        return EXIT_UNEXPECTED
    if fatal.wait(0):
        return EXIT_BOOKIE_FAILED
    log.info("stopped", extra={"exit_code": code})
    return code


def _allow_descriptors() -> None:
    """As many as the system lets us have, some of them for journals, entry logs and marks, which no connection gets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (soft, resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    kept = spare_descriptors.keep(min(STORAGE_DESCRIPTORS, soft // 4))
    log.info("descriptors", extra={"limit": soft, "kept_for_storage": kept})


def _start(bookie: Bookie, stop: signals.Stop) -> Addresses:
    """What the system refuses during a start is bad input as well."""
    try:
        return bookie.start(stop.check)
    except OSError as error:
        what = error.filename or "the system"
        raise StartRefused(f"{what}: {error.strerror or error}; correct it and start again") from error


def _stop(bookie: Bookie) -> None:
    try:
        bookie.stop()
    except OSError as error:
        what = error.filename or "the last checkpoint"
        raise StopFailed(f"{what}: {error.strerror}; what was not flushed is in the journal, start again") from error


class StopFailed(BookKeeperError):
    """The bookie could not flush at its end; nothing is lost."""

    exit_code = EXIT_BOOKIE_FAILED


def _announce(bookie: Bookie, addresses: Addresses, ready_fd: int | None) -> None:
    _spin(int(os.environ.get(SPIN_VARIABLE, "0")))
    data = "{}:{}".format(*addresses.data)
    planes = {"admin": "none"} | {name: "{}:{}".format(*where) for name, where in addresses.planes.items()}
    log.info("serving", extra={"bookie_id": bookie.bookie_id, "address": data, "state": bookie.state, **planes})
    notify("READY=1", f"STATUS={bookie.bookie_id} serves at {data}")
    if ready_fd is not None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(ready_fd, "w") as ready:
            listening = " ".join(f"{name}={where}" for name, where in planes.items())
            ready.write(f"{data} id={bookie.bookie_id} {listening}\n")


def _refused(error: BookKeeperError) -> int:
    if fatal.wait(0):  # the supervisor has said why, and is about to leave
        return EXIT_BOOKIE_FAILED
    log.critical(one_line(error), extra={"exit_code": error.exit_code})
    return error.exit_code


def _spin(count: int) -> None:
    """Burn CPU under the GIL, so that measurements show who needs it."""

    def burn() -> None:
        while True:
            pass

    for number in range(count):
        threading.Thread(target=burn, name=f"spin-{number}", daemon=True).start()
    if count:
        log.warning("threads burn CPU for a measurement", extra={"count": count})


if __name__ == "__main__":
    main()
