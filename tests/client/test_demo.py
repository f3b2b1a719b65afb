"""The demo command against a real bookie: exit codes, JSON, and that damage is noticed."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bookie.client import Channel, Digest
from bookie.client.demo import main

Bookies = Callable[..., list[Any]]


def demo(*options: object) -> Result:
    """Run the command and return its output."""
    return CliRunner().invoke(main, [str(option) for option in ("--wait-s", 0, *options)])


@pytest.fixture
def address(bookies: Bookies) -> str:
    """The address of a new bookie."""
    host, port = bookies(1)[0].address
    return f"{host}:{port}"


def test_writes_and_reads_back(address: str) -> None:
    """All entries are written, read and checked; a later --check finds them again."""
    result = demo("--address", address, "--entries", 5000, "--size", 100, "-o", "json")
    assert result.exit_code == 0, result.output
    reported = json.loads(result.stdout)
    assert [phase["entries"] for phase in reported["phases"][:2]] == [5000, 5000]
    assert all(phase["p50_ms"] > 0 for phase in reported["phases"] if phase["p50_ms"] is not None)
    check = ["--address", address, "--entries", "5000", "--size", "100", "--check", str(reported["ledger"])]
    again = demo(*check)
    assert again.exit_code == 0, again.output
    assert f"ledger {reported['ledger']}: all digests and payloads are correct" in again.stdout
    *_, hint = again.stdout.splitlines()
    python, *options = shlex.split(hint)
    assert options == ["-m", "bookie.client.demo", *check]
    assert Path(python).resolve() == Path(sys.executable).resolve()
    assert max(map(len, again.stdout.splitlines()[:-1])) <= 80


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--size", 99), "entry 0: the payload is not as it was written"),
        (("--size", 100, "--digest", "HMAC"), "entry 0: no valid HMAC digest"),
        (("--size", 100, "--entries", 51), "from entry 50: answered with code 2"),
    ],
)
def test_mismatch_fails(address: str, options: tuple[object, ...], message: str) -> None:
    """A wrong payload, a wrong digest and a missing entry end with an error and exit code 2."""
    reported = json.loads(demo("--address", address, "--entries", 50, "--size", 100, "-o", "json").stdout)
    result = demo("--address", address, "--entries", 50, "--check", reported["ledger"], *options)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.thorough
def test_one_wrong_byte_fails(address: str) -> None:
    """An entry with a valid digest whose payload differs in one byte is found."""
    reported = json.loads(demo("--address", address, "--entries", 50, "--size", 100, "-o", "json").stdout)
    host, port = address.split(":")
    digest = Digest.of()
    with Channel.connect(host, int(port)) as channel:
        batch = channel.batch_read(reported["ledger"], 0, 50)
        payloads = bytearray(b"".join(bytes(payload) for _, payload in batch.payloads(digest)))
        payloads[33 * 100 + 99] ^= 1
        channel.add_batch(1, 0, payloads, np.arange(51) * 100, digest=digest)
    result = demo("--address", address, "--entries", 50, "--size", 100, "--check", 1)
    assert result.exit_code == 2
    assert "ledger 1, entry 33: the payload is not as it was written" in result.stderr


def test_nobody_there() -> None:
    """Without a bookie, the command prints one line with the address."""
    result = demo("--address", "127.0.0.1:1")
    assert result.exit_code == 2
    assert "127.0.0.1:1: the bookie is down" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_bad_address() -> None:
    """An address without a port is a usage error."""
    result = demo("--address", "localhost")
    assert result.exit_code == 2
    assert "is not host:port" in result.stderr
