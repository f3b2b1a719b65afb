"""What `bookie-server` does: loads the configuration, starts the bookie, waits, stops, and returns an exit code."""

import contextlib
import gc
import logging
import os
import resource
import sys
import threading
from pathlib import Path

import click

from bookie import __version__
from bookie._fast.base import fatal, spare_descriptors
from bookie.errors import BookKeeperError, IllegalOperation, MetadataSessionLost, MetadataStoreError, StartRefused
from bookie.metadata import open_driver
from bookie.metadata.bookies.identity import IdentitySettings, bind_host
from bookie.metadata.bookies.reachable import doubt_about_address
from bookie.server.configuration.errors import one_line
from bookie.server.configuration.loader import Loaded, load
from bookie.server.configuration.reference import render
from bookie.server.lifecycle import Addresses, Bookie
from bookie.server.logs import formats
from bookie.server.process import signals
from bookie.server.process.notify import PATIENCE_S, notify
from bookie.server.process.supervisor import EXIT_BOOKIE_FAILED, Supervisor
from bookie.terminal.closed_output import leave_output
from bookie.terminal.entry import EXIT_INTERRUPTED, expect_work

__all__ = ["leave_out_of_collections", "print_keys", "run"]

log = logging.getLogger("bookie.server")  # when run as a command, this module is called __main__

EXIT_UNEXPECTED = 2
LEFT_S = 2.0
"""How long the interpreter may wait for threads that are left when the bookie has stopped, in seconds."""
NOBODY_ELSE = 0o077
"""Files that a bookie writes are for its user only, even those of libraries; its own files have explicit modes."""
SPIN_VARIABLE = "BOOKIE_SPIN_THREADS"
STORAGE_DESCRIPTORS = 1024
"""The most descriptors reserved for storage; a quarter of all if the system allows few."""


def print_keys() -> int:
    """Print the reference of all configuration keys. Returns the exit code of the command."""
    try:
        click.echo(render(), nl=False)
    except BrokenPipeError:  # its reader, such as `head`, has seen enough
        leave_output()
    except OSError as error:
        leave_output()
        click.echo(f"bookie-server: standard output: {error.strerror or error}", err=True)
        return StartRefused.exit_code
    return 0


def run(conf: Path | None, ready_fd: int | None, *, check: bool, init_cluster: bool) -> int:
    """Load the configuration, then check it, create a cluster, or run a bookie until it is stopped.

    Args:
        conf: The configuration file, or None for the defaults and the environment alone.
        ready_fd: The descriptor to which the addresses are written when the bookie serves, or None.
        check: Only check the configuration.
        init_cluster: Only create a cluster in the metadata store.

    Returns:
        The exit code of the command.
    """
    os.umask(NOBODY_ELSE)
    try:
        loaded = load(conf, os.environ)
    except BookKeeperError as error:
        click.echo(f"bookie-server: {one_line(error)}", err=True)
        return error.exit_code
    formats.configure(loaded.settings.server.log_format, loaded.settings.server.log_level)
    for notice in loaded.notices:
        log.log(notice.level, notice.text)
    if check:
        return _check(loaded)
    return _init_cluster(loaded) if init_cluster else _serve(loaded, ready_fd)


def leave_out_of_collections() -> None:
    """Let the collector of the interpreter ignore the objects that exist now, and collect those that come."""
    gc.freeze()
    gc.enable()


def _check(loaded: Loaded) -> int:
    for line in loaded.misspelt:
        click.echo(f"bookie-server: {line}", err=True)
    if loaded.misspelt:
        return StartRefused.exit_code
    try:
        bookie = Bookie(loaded.settings, Supervisor(), lambda _: None)
        bookie.check()
    except BookKeeperError as error:
        return _refused(error)
    _doubt_address(loaded.settings.identity, bind_host(loaded.settings.identity))
    click.echo(f"the configuration of {bookie.bookie_id} is valid")
    return 0


def _doubt_address(settings: IdentitySettings, bound: str) -> None:
    if doubt := doubt_about_address(settings, bound):
        log.warning(doubt)


def _init_cluster(loaded: Loaded) -> int:
    """Create a cluster, once for each metadata store. An existing one is not changed, and the command is refused."""
    settings = loaded.settings.metadata
    try:
        driver = open_driver(settings.service_uri, session_timeout_ms=settings.session_timeout_ms)
        expect_work()
        driver.start()
        try:
            instance_id = driver.cluster.initialize()
        finally:
            driver.stop()
    except IllegalOperation as error:
        return _refused(StartRefused(f"{one_line(error)}; nothing was changed"))
    except KeyboardInterrupt:
        click.echo("bookie-server: interrupted; call it again: it is refused if the cluster was created", err=True)
        return EXIT_INTERRUPTED
    except BookKeeperError as error:
        return _refused(error)
    click.echo(f"new cluster {instance_id} at {settings.service_uri}")
    return 0


def _serve(loaded: Loaded, ready_fd: int | None) -> int:
    sys.setswitchinterval(loaded.settings.server.switch_interval_us / 1e6)
    _allow_descriptors()
    leave_out_of_collections()  # from here on, as a start may wait for the metadata store for hours
    supervisor = Supervisor()
    supervisor.start()
    code = _run_bookie(loaded, ready_fd, supervisor)
    supervisor.finish(code, LEFT_S)
    return code


def _run_bookie(loaded: Loaded, ready_fd: int | None, supervisor: Supervisor) -> int:
    """Start the bookie, wait for the end, and stop it. Returns the exit code."""
    server = loaded.settings.server
    stop = signals.Stop(lambda: supervisor.limit(server.shutdown_timeout_ms / 1000))

    def give_up(error: BookKeeperError) -> None:
        log.critical(one_line(error), extra={"exit_code": error.exit_code})
        stop.request(error.exit_code)

    try:
        bookie = Bookie(loaded.settings, supervisor, give_up)
        signals.install(stop, bookie.hurry)
        log.info("these settings were given", extra=dict(loaded.given))
        log.info(
            "the bookie is starting", extra={"version": __version__, "pid": os.getpid(), "bookie_id": bookie.bookie_id}
        )
        identity = loaded.settings.identity
        announced = (identity, bind_host(identity))  # looked up aside, as a resolver without network takes seconds
        threading.Thread(target=_doubt_address, args=announced, name="announced-address", daemon=True).start()
        addresses = _start(bookie, stop)
        leave_out_of_collections()
        _announce(bookie, addresses, ready_fd)
        code = stop.wait()
        notify("STOPPING=1", patience_s=PATIENCE_S)
        log.info("the bookie is stopping")
        _stop(bookie)
    except signals.StopRequested:
        log.info("the bookie was stopped before its start was complete")
        return stop.wait()
    except MetadataStoreError as error:  # it may be back later, so a supervisor should start the bookie again
        return _refused(error, MetadataSessionLost.exit_code)
    except BookKeeperError as error:
        return _refused(error)
    except Exception:
        log.critical("an unexpected failure occurred", exc_info=True)
        return EXIT_UNEXPECTED
    if fatal.wait(0):
        return EXIT_BOOKIE_FAILED
    log.info("the bookie has stopped", extra={"exit_code": code})
    return code


def _allow_descriptors() -> None:
    """Raise the limit of descriptors to the system's, and reserve some for the storage, which no connection gets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard not in (soft, resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    kept = spare_descriptors.keep(min(STORAGE_DESCRIPTORS, soft // 4))
    log.info("file descriptors", extra={"limit": soft, "kept_for_storage": kept})


def _start(bookie: Bookie, stop: signals.Stop) -> Addresses:
    """Start the bookie. A failed system call during a start counts as bad input too."""
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
        raise StopFailed(
            f"{what}: {error.strerror}; the journal has what was not flushed, so start the bookie again"
        ) from error


class StopFailed(BookKeeperError):
    """The bookie could not flush at its end. Nothing is lost."""

    exit_code = EXIT_BOOKIE_FAILED


def _announce(bookie: Bookie, addresses: Addresses, ready_fd: int | None) -> None:
    _spin(int(os.environ.get(SPIN_VARIABLE, "0")))
    data = "{}:{}".format(*addresses.data)
    planes = {"admin": "none"} | {name: "{}:{}".format(*where) for name, where in addresses.planes.items()}
    log.info("serving", extra={"bookie_id": bookie.bookie_id, "address": data, "state": bookie.state, **planes})
    if ready_fd is not None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(ready_fd, "w") as ready:
            listening = " ".join(f"{name}={where}" for name, where in planes.items())
            ready.write(f"{data} id={bookie.bookie_id} {listening}\n")
    notify("READY=1", f"STATUS={bookie.bookie_id} serves at {data}", patience_s=PATIENCE_S)


def _refused(error: BookKeeperError, exit_code: int | None = None) -> int:
    exit_code = error.exit_code if exit_code is None else exit_code
    if fatal.wait(0):  # the supervisor has logged the reason, and is about to exit
        return EXIT_BOOKIE_FAILED
    log.critical(one_line(error), extra={"exit_code": exit_code})
    return exit_code


def _spin(count: int) -> None:
    """Burn CPU under the GIL, so that measurements show what needs it."""

    def burn() -> None:
        while True:
            pass

    for number in range(count):
        threading.Thread(target=burn, name=f"spin-{number}", daemon=True).start()
    if count:
        log.warning("threads burn CPU for a measurement", extra={"count": count})
