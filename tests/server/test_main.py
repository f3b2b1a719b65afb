"""The command line without a running bookie: help, keys, version, check."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bookie import __version__
from bookie.server.configuration.reference import render
from bookie.server.main import main

BASE = "journalDirectories=/j\nledgerDirectories=/l\nmetadataServiceUri=lmdb:///m\nadvertisedAddress=bk1\n"
HTTPS = "adminPort=-1\nhttpServerEnabled=true\nhttpServerTlsEnable=true\n"


def run(*arguments: str, environment: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, env=environment)


def test_help_says_what_a_manual_says() -> None:
    """The help has options, signals, exit codes, environment and examples, and fits a terminal's width."""
    text = run("--help").output
    for word in ("--conf", "--check", "--ready-fd", "SIGTERM", "EXIT CODES", "ENVIRONMENT", "EXAMPLES", "BK_KEY"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 100


def test_version_and_keys() -> None:
    """`--version` and `--keys` print their text and exit."""
    assert __version__ in run("--version").output
    assert run("--keys").output == render()


def test_check(tmp_path: Path) -> None:
    """A correct file gives 0 and the bookie's identity, and nothing is created."""
    conf = tmp_path / "bk.conf"
    conf.write_text(BASE)
    result = run("--conf", str(conf), "--check")
    assert result.exit_code == 0, result.output
    assert "bk1:3181 is valid" in result.output
    assert list(tmp_path.iterdir()) == [conf]


def test_check_refuses(tmp_path: Path) -> None:
    """A wrong value, too much memory, unusable files of the admin ports, and a missing file give 1 and one line."""
    conf = tmp_path / "bk.conf"
    for text, says in (
        ("bookiePort=x\n", "bookiePort=x"),
        ("memoryLimitMb=1\n", "memory budgets"),
        ("autoRecoveryDaemonEnabled=true\nensemblePlacementPolicy=nonsense\n", "ensemblePlacementPolicy='nonsense'"),
        ("adminTokensFile=/none\n", "adminTokensFile=/none: it cannot be read"),
        (f"adminTlsCertificatePath={conf}\nadminTlsKeyPath={conf}\n", "is not PEM"),
        (f"{HTTPS}adminTlsCertificatePath={conf}\nadminTlsKeyPath={conf}\n", "is not PEM"),
    ):
        conf.write_text(BASE + text)
        result = run("--conf", str(conf), "--check")
        assert result.exit_code == 1
        assert re.search(says, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit)
    assert run("--conf", str(tmp_path / "none"), "--check").exit_code == 1


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("bookieMaxMultipleForWeightBasedPlacment", "bookieMaxMultipleForWeightBasedPlacement"),
        ("diskweightbasedplacementenabled", "diskWeightBasedPlacementEnabled"),
        ("jurnalDirectories", "journalDirectories"),
        ("dbStorage_rocksDB_blocksize", "dbStorage_rocksDB_blockSize"),
    ],
)
def test_check_refuses_misspelt_keys(tmp_path: Path, key: str, meant: str) -> None:
    """A key that looks like a known one gives 1 and the known one, in the file as in the environment."""
    conf = tmp_path / "bk.conf"
    conf.write_text(BASE)
    told = f"{key} (environment variable BK_{key}): no such key; do you mean {meant}?"
    result = run("--conf", str(conf), "--check", environment={f"BK_{key}": "1"})
    assert (result.exit_code, told in result.output) == (1, True), result.output
    conf.write_text(f"{BASE}{key}=1\n")
    assert run("--conf", str(conf), "--check").exit_code == 1


def test_check_accepts_keys_of_others(tmp_path: Path) -> None:
    """Keys of plug-ins, and those of Apache BookKeeper that have no meaning here, are no mistakes."""
    conf = tmp_path / "bk.conf"
    conf.write_text(f"{BASE}myPlugin.colour=red\nuseV2WireProtocol=true\nclientTcpNoDelay=true\nnumIOThreads=8\n")
    assert run("--conf", str(conf), "--check").exit_code == 0


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("advertisedAddress=bk1:3181", "advertisedAddress=bk1:3181: it is neither a host name nor an IP address; give"),
        ("bookieId=bk/1", "bookieId=bk/1: bookie id 'bk/1' has characters other than letters"),
    ],
)
def test_a_start_and_a_check_refuse_an_address(tmp_path: Path, setting: str, says: str) -> None:
    """They say the same, with the key and its value."""
    conf = tmp_path / "bk.conf"
    conf.write_text(f"{BASE}{setting}\n")
    for options in ([], ["--check"]):
        command = [sys.executable, "-m", "bookie.server.main", "--conf", str(conf), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, says in done.stderr) == (1, True), done.stderr


def test_a_check_warns_of_an_address(tmp_path: Path) -> None:
    """A name without an address may get one, so this refuses nothing: Apache BookKeeper does not look it up at all."""
    conf = tmp_path / "bk.conf"
    conf.write_text(f"{BASE}advertisedAddress=bk1.invalid\n")
    result = run("--conf", str(conf), "--check")
    assert result.exit_code == 0
    assert "advertisedAddress=bk1.invalid: this machine finds no address for it" in result.output


def test_conf_from_the_environment(tmp_path: Path) -> None:
    """BOOKIE_CONF names the file if --conf does not."""
    conf = tmp_path / "bk.conf"
    conf.write_text(BASE)
    assert run("--check", environment={"BOOKIE_CONF": str(conf)}).exit_code == 0


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--conf"], ["--ready-fd", "x"], ["more"]])
def test_a_wrong_command_line_is_bad_input(arguments: list[str]) -> None:
    """A supervisor that starts failed bookies again leaves this one alone, as it does after a wrong configuration."""
    result = run(*arguments)
    assert result.exit_code == 1
    assert "Error: " in result.output


def test_keys_for_an_output_that_takes_nothing() -> None:
    """A full disk is one line and a failure; a reader that has left, as `head` does, is neither."""
    command = [sys.executable, "-m", "bookie.server.main", "--keys"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "bookie-server: standard output: No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
