"""The help of each command of `bkadmin` and `bkpipe` has an example that the command understands."""

import re
import shlex
from typing import Any

import click
import pytest

from bookie.spark.bkpipe import bkpipe
from bookie.spark.jobs import JOBS
from bookie_admin.bkadmin.catalogue import COMMANDS
from bookie_admin.bkadmin.main import bkadmin

NAMES = [*((bkadmin, name) for name in COMMANDS), *((bkpipe, name) for name in JOBS)]


def examples_of(program: click.Group, name: str) -> list[str]:
    """Return the command lines in the help of a command, without what shells do with files and pipes."""
    command = program.get_command(click.Context(program), name)
    assert command is not None
    context = click.Context(command, info_name=name, terminal_width=500, max_content_width=500)
    _, _, end = command.get_help(context).partition("EXAMPLE")
    return [
        re.split(" [<>|] ", line)[0].strip() for line in end.splitlines() if line.startswith(f"    {program.name} ")
    ]


@pytest.mark.parametrize(("program", "name"), NAMES, ids=[name for _, name in NAMES])
def test_examples_are_understood(program: click.Group, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options exist, and values are of their kinds; files need not exist."""
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, _param, _context: value)
    monkeypatch.setattr(click.File, "convert", lambda _self, value, _param, _context: value)
    command: Any = program.get_command(click.Context(program), name)
    found = examples_of(program, name)
    assert found
    for example in found:
        words = shlex.split(example)
        assert words[:2] == [program.name, name]
        command.make_context(name, words[2:], parent=click.Context(program, info_name=program.name))
