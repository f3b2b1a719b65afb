"""The pages of docs/commands, made from the commands: `python -m tests.command_pages` writes them.

A page has the help of each command as it prints it, by section, and `tests/test_docs.py` compares it with the code.
"""

import re
import sys
from itertools import groupby
from pathlib import Path

import click

from bookie.server.main import main as bookie_server
from bookie.spark.bkpipe import bkpipe
from bookie.spark.jobs import JOBS as BKPIPE
from bookie.terminal.lazy import Command
from bookie_admin.bkadmin.catalogue import COMMANDS as BKADMIN
from bookie_admin.bkadmin.main import bkadmin

PAGES = Path(__file__).resolve().parent.parent / "docs/commands"
WIDTH = 110
HEAD = "<!-- This page is made from the code: python -m tests.command_pages -->"


def help_of(command: click.Command, name: str, parent: click.Context | None = None) -> str:
    """Return what `--help` prints in a wide terminal, as a block."""
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    text = command.get_help(click.Context(command, info_name=name, parent=parent, **settings))
    plain = re.sub(r"[ \b]+$", "", text, flags=re.MULTILINE).rstrip()
    return f"```text\n{plain}\n```\n"


def page(name: str, program: click.Command, catalogue: dict[str, Command]) -> str:
    """Return the page of a program."""
    parts = [f"# {name}\n", f"{HEAD}\n", help_of(program, name)]
    context = click.Context(program, info_name=name, **program.context_settings)
    for section, group in groupby(catalogue.items(), lambda one: one[1].section):
        parts.append(f"## {section}\n")
        for word, entry in group:
            assert isinstance(program, click.Group)
            command = program.get_command(context, word)
            assert command is not None
            parts += [f"### {name} {word}\n", f"{entry.summary}\n", help_of(command, word, context)]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """Return all pages by name of the file."""
    return {
        "bkadmin.md": page("bkadmin", bkadmin, BKADMIN),
        "bkpipe.md": page("bkpipe", bkpipe, BKPIPE),
        "bookie-server.md": page("bookie-server", bookie_server, {}),
    }


def main() -> None:
    """Write the pages; with --check, only exit with the names of those that are not as the code has them."""
    found = pages()
    if sys.argv[1:] == ["--check"]:
        # Versions of click break lines in other places.
        wrong = [name for name, text in found.items() if (PAGES / name).read_text().split() != text.split()]
        sys.exit("\n".join(wrong) or 0)
    PAGES.mkdir(exist_ok=True)
    for name, text in found.items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    main()
