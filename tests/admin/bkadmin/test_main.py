"""The command bkadmin itself: it imports only the called command, and every error is one line and an exit code."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import click
import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from bookie_admin.bkadmin.catalogue import COMMANDS
from bookie_admin.bkadmin.commands import samples
from bookie_admin.bkadmin.main import bkadmin as bkadmin_group
from bookie_admin.bkadmin.main import run
from tests.admin.bkadmin.conftest import BkAdmin

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")
pytest_plugins = ["bookie.local.fixtures"]


def test_every_command_is_there_and_explains_itself(bkadmin: BkAdmin) -> None:
    """Every command of the catalogue has a module and a help page."""
    listed = bkadmin("--help").out
    for name in COMMANDS:
        helped = bkadmin(name, "--help")
        assert helped.code == 0
        assert helped.out.startswith(f"Usage: bkadmin {name}")
        assert name in listed


def test_upstreams_names(bkadmin: BkAdmin) -> None:
    """Apache BookKeeper's names work in any case; commands that do not apply say what to use instead."""
    assert bkadmin("updateBookieInLedger", "--help").code == 0
    assert bkadmin("help").err == "bkadmin: help: use bkadmin --help or bkadmin COMMAND --help (bkadmin --help)\n"


ROOT = Path(__file__).resolve().parents[3]
FILES_ALONE = {
    "bookieid",
    "listfilesondisc",
    "localconsistencycheck",
    "readjournal",
    "readlog",
    "readlogmetadata",
    "rebuild-db-ledger-locations-index",
    "samples",
    "standalone",
}
"""The commands that contact no server."""


@pytest.mark.parametrize("name", COMMANDS)
def test_options_that_all_commands_have(name: str) -> None:
    """All have output for programs, a timeout if they wait for servers, and a dry run if they ask for confirmation."""
    command = bkadmin_group.get_command(click.Context(bkadmin_group), name)
    assert command is not None
    options = {option for one in command.params for option in one.opts}
    assert "--output" in options
    assert ("--timeout" in options) != (name in FILES_ALONE)
    assert ("--yes" in options) == ("--dry-run" in options)


def test_help_loads_nothing_heavy() -> None:
    """The first help page loads neither numpy nor gRPC."""
    code = "import sys; from bookie_admin.bkadmin.main import run; run(['--help']); print('LOADED', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.partition("LOADED")[2].split())
    assert not loaded & {"numpy", "grpc", "google.protobuf", "kazoo", "rich", "yaml", "lmdb"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["listbokies"], 2, "'listbookies'"),
        (["ledgermetadata", "x"], 2, "not a whole number"),
        (["ledgermetadata", str(1 << 63)], 2, "range"),
        (["readledger", "7", "-le", "a"], 2, "(bkadmin readledger --help)"),
        (["lostbookierecoverydelay", "--set", str(1 << 31)], 2, "range"),
        (["ledgermetadata", "-3"], 2, "No such option"),
        (["lastmark"], 1, "--conf"),
        (["lastmark", "--conf", "/nowhere/bk.conf"], 1, "/nowhere/bk.conf"),
        (["listbookies", "-u", "ftp://x"], 1, "ftp"),
        (["listbookies", "-u", "grpc://127.0.0.1:1", "--timeout", "0.5"], 1, "127.0.0.1:1"),
        (["readlog", "/nowhere/0.log"], 1, "/nowhere/0.log"),
        (["readlog", "/proc"], 1, "/proc cannot be read: it is a directory"),
        (["status", "--timeout", "nan"], 2, "nan is not a number of seconds"),
        (["status", "--timeout", "inf"], 2, "range"),
        (["listbookies", "-u", "grpc://127.0.0.1"], 1, "names no port: append"),
        (["listbookies", "-u", "lmdb:///nowhere/metadata"], 1, "no metadata store in this directory"),
        (["status", "--token-file", "/proc/self/exe"], 1, "has characters that a request cannot carry"),
    ],
)
def test_an_error_is_one_line(bkadmin: BkAdmin, words: list[str], code: int, says: str) -> None:
    """It names the value, and nothing is printed to standard output."""
    done = bkadmin(*words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert not Path("/nowhere").exists()
    if code == 1:
        assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("zk+hierarchical://127.0.0.1:1/ledgers", "did not answer within 1 s"),
        ("grpcs://{plain}", "the TLS handshake failed; check that the port has TLS"),
    ],
)
def test_libraries_tell_nothing_of_their_own(uri: str, says: str) -> None:
    """The retries of kazoo and gRPC's reports of handshakes are not printed; there is one line with the remedy."""
    with socket.create_server(("127.0.0.1", 0)) as plain:
        where = uri.format(plain="{}:{}".format(*plain.getsockname()))
        command = [sys.executable, "-m", "bookie_admin.bkadmin.main", "listbookies", "-u", where, "--timeout", "1"]
        answering = threading.Thread(target=_talk_in_clear, args=(plain,), daemon=True)
        answering.start()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        plain.shutdown(socket.SHUT_RDWR)
        answering.join()
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert says in done.stderr


def _talk_in_clear(server: socket.socket) -> None:
    """Reply in clear text to every connection, until the socket is shut down."""
    with contextlib.suppress(OSError):
        while True:
            with server.accept()[0] as one:
                one.sendall(b"HTTP/1.0 400 no\r\n\r\n")


@pytest.mark.thorough
def test_what_runs_long_has_a_log() -> None:
    """Auto-recovery that waits for its metadata store logs so, in the format of a bookie; SIGTERM stops it."""
    uri = ("-u", "grpc://127.0.0.1:1")
    command = [sys.executable, "-m", "bookie_admin.bkadmin.main", "autorecovery", *uri]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert "stop it with SIGTERM or Ctrl-C" in running.stderr.readline()
        while "level=warning" not in (line := running.stderr.readline()):
            assert line
        running.terminate()
        running.stderr.read()
    assert "waits for the metadata store" in line
    assert running.returncode == 0


def test_a_call_that_is_interrupted() -> None:
    """Ctrl-C while a bookie does not answer: one line, and the shells' exit code."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = "{}:{}".format(*silent.getsockname())
        command = [sys.executable, "-m", "bookie_admin.bkadmin.main", "flush", "--admin", where, "--timeout", "60"]
        with (
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting,
            silent.accept()[0],
        ):
            waiting.send_signal(signal.SIGINT)
            out, said = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (130, "")
    assert said.strip() == "bkadmin: interrupted; what was done until then stays"


def test_a_reader_that_leaves() -> None:
    """A command whose output nobody reads any more, as behind `head`, ends with exit code 0 and says nothing."""
    command = [sys.executable, "-m", "bookie_admin.bkadmin.main", "samples", "bk.conf"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours(bookie_cluster: LocalCluster, variables: dict[str, str], coloured: bool) -> None:
    """States have colours on a terminal, unless NO_COLOR is set to something or the terminal has none."""
    command = [sys.executable, "-m", "bookie_admin.bkadmin.main", "listbookies", "-u", bookie_cluster.uri]
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"} | variables
    screen, terminal = os.openpty()
    try:
        subprocess.run(command, cwd=ROOT, stdout=terminal, env=environment, check=True)
        shown = os.read(screen, 4096)
    finally:
        os.close(terminal)
        os.close(screen)
    assert b"writable" in shown
    assert (b"\x1b[" in shown) == coloured


def test_a_server_that_leaves(bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that breaks is a failure, unlike an output that nobody reads."""
    monkeypatch.setattr(samples, "directory", Mock(side_effect=BrokenPipeError))
    done = bkadmin("samples")
    assert (done.code, done.err) == (1, "bkadmin: a server closed the connection; try again\n")


def test_standard_input_that_is_closed(bookie_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is like an empty one."""
    monkeypatch.setattr(sys, "stdin", None)
    assert run(["produce", "-u", bookie_cluster.uri]) == 0
    sys.stdin.close()  # what took its place


def test_words_are_completed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The completion line of the help page completes commands and their options."""
    monkeypatch.setenv("_BKADMIN_COMPLETE", "bash_complete")
    for words, place, finds in (
        ("bkadmin listu", "1", "listunderreplicated"),
        ("bkadmin bench --dig", "2", "--digest"),
        ("bkadmin samples bk.c", "2", "bk.conf"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", place)
        with pytest.raises(SystemExit):
            run([])
        assert f"plain,{finds}" in capsys.readouterr().out.splitlines()


def test_completion_shows_no_errors(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a command that does not apply, a shell shows nothing, least of all a line amid the user's own."""
    monkeypatch.setenv("_BKADMIN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "bkadmin help ")
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit) as ended:
        run([])
    assert ended.value.code == 0
    assert capsys.readouterr().err == ""


def test_ids_and_names_are_completed(
    bookie_cluster: LocalCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bookies and logs of the cluster that the line or the environment names; nothing where no store answers."""
    with BookKeeper(bookie_cluster.uri) as bk:
        bk.logs.append("lines-of-today", [])
    monkeypatch.setenv("_BKADMIN_COMPLETE", "zsh_complete")

    def found(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(["bkadmin", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            run([])
        return capsys.readouterr().out.splitlines()[1::3]

    ids = [bookie.id for bookie in bookie_cluster]
    assert found("endpointinfo", "-u", bookie_cluster.uri, "bookie-") == ids
    monkeypatch.setenv("BOOKIE_METADATA_URI", bookie_cluster.uri)
    assert found("listledgers", "--bookie", ids[0]) == ids[:1]
    assert found("logs", "show", "lines-of") == found("consume", "--log", "lines-of") == ["lines-of-today"]
    assert found("recover", f"{ids[0]},{ids[1][:-1]}") == [f"{ids[0]},{one}" for one in ids]
    assert found("updatebookieinledger", "--src-bookie", ids[0]) == found("updatecookie", "--old", ids[0]) == ids[:1]
    assert found("endpointinfo", "-u", "grpc://127.0.0.1:1", "bookie-") == []


def test_a_configuration_beats_the_environment(
    bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A --conf on the command line names its own cluster and bookie, whatever the environment names; only options on
    the command line name others. A configuration of the environment does not.
    """
    conf = tmp_path / "bk.conf"
    monkeypatch.setenv("BOOKIE_METADATA_URI", "redis://environment/x")
    monkeypatch.setenv("BOOKIE_ADMIN", "environment")
    for command in ("listledgers", "status"):
        assert f"{conf}: it cannot be read" in bkadmin(command, "--conf", conf).err
    assert "redis://line/x" in bkadmin("listledgers", "--conf", conf, "-u", "redis://line/x").err
    assert "--admin line" in bkadmin("status", "--conf", conf, "--admin", "line").err
    monkeypatch.setenv("BOOKIE_CONF", str(conf))
    assert "redis://environment/x" in bkadmin("listledgers").err
    assert "--admin environment" in bkadmin("status").err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("bench", "--entry-size", 0), 2, "'--entry-size': 0 is not in the range x>=1"),
        (("bench", "--entry-size", 6 << 20), 2, f"--entry-size {6 << 20}: an entry must fit into a frame of {5 << 20}"),
        (("bench", "--entry-size", 1 << 60), 2, "lower it, or raise nettyMaxFrameSizeBytes of the client (--conf or"),
        (("status", "--admin", "127.0.0.1:65536"), 1, "not of the form HOST:PORT"),
        (("status", "--admin", "127.0.0.1:\N{SUPERSCRIPT TWO}"), 1, "not of the form HOST:PORT"),
    ],
)
def test_values_out_of_range(bkadmin: BkAdmin, words: tuple[object, ...], code: int, said: str) -> None:
    """One line says so before anything is tried."""
    done = bkadmin(*words)
    assert done.code == code
    assert said in done.err
    assert done.err.count("\n") == 1
