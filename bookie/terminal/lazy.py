"""A click command with subcommands that imports only the one that is called, and turns errors into one line and an
exit code.
"""

import difflib
import importlib
import os
import select
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import click

from bookie.errors import BookKeeperError
from bookie.terminal.closed_output import STDOUT, leave_output
from bookie.terminal.entry import EXIT_INTERRUPTED, expect_work

__all__ = ["Command", "EXIT_FAILED", "EXIT_PARTIAL", "LazyGroup", "run"]

EXIT_FAILED = 1
EXIT_PARTIAL = 3


class Command(NamedTuple):
    """A subcommand. Its module has its name, with underscores in place of hyphens."""

    section: str
    summary: str
    example: str = ""
    """What may follow its name on a command line, if its help has no examples of its own."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are called.

    Args:
        catalogue: all subcommands by name, grouped by section.
        package: the package of their modules; each module has its click command as `command`.
        instead: names that users may try, and what to use in their place.
    """

    def __init__(
        self,
        *args: Any,
        catalogue: Mapping[str, Command],
        package: str,
        instead: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._catalogue = catalogue
        self._package = package
        self._instead = instead or {}

    def invoke(self, context: click.Context) -> Any:
        """Run the command. When the reader of its output has left, as `head` does, it ends at once and in silence."""
        try:
            return super().invoke(context)
        except BrokenPipeError as error:  # click would end with 1 and say nothing
            if not _reader_left():
                raise BookKeeperError("a server closed the connection; try again") from error
            leave_output()
            return 0

    def list_commands(self, _context: click.Context) -> list[str]:
        return list(self._catalogue)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        name = name if name in self._catalogue else name.lower()  # Apache BookKeeper spells some with capitals
        if name not in self._catalogue:
            return None
        module = importlib.import_module(f"{self._package}.{name.replace('-', '_')}")
        expect_work()
        command = module.command
        assert isinstance(command, click.Command)
        command.name = name
        if example := self._catalogue[name].example:
            command.epilog = f"\b\nEXAMPLE\n  {self.name} {name} {example}"
        return command

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        for section, group in groupby(self._catalogue.items(), lambda one: one[1].section):
            with formatter.section(section):
                formatter.write_dl([(name, command.summary) for name, command in group])

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self._instead and not context.resilient_parsing:  # a shell that completes words shows no errors
            raise click.UsageError(f"{args[0]}: {self._instead[args[0]]}")
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self._catalogue, n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", context) from None


KINDS = {
    "is not a valid integer range.": "is not a whole number.",
    "is not a valid integer.": "is not a whole number.",
    "is not a valid float range.": "is not a number.",
    "is not a valid float.": "is not a number.",
}
"""Click's words for a number that is none, and ours."""


def run(group: click.Group, name: str, arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Errors that an operator can fix never print a traceback.

    Args:
        group: the command.
        name: the name of the program, for messages.
        arguments: the command line without the name of the program.
    """
    if sys.stdin is None:  # it was closed, as `command <&-` does: there is nothing to read
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 - for the rest of the process
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    try:
        colour = False if plain else None  # None: whether the output is a terminal decides
        code = group.main(args=list(arguments), prog_name=name, standalone_mode=False, color=colour)
    except getattr(click.exceptions, "NoArgsIsHelpError", ()) as error:  # does not exist in all versions of click
        error.show()
        return int(error.exit_code)
    except click.UsageError as error:
        command = name if error.ctx is None else error.ctx.command_path
        click.echo(f"{command}: {_told(error)} ({command} --help)", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as abort:
        if isinstance(abort.__cause__, KeyboardInterrupt):  # Ctrl-C during the work; at a question there is no cause
            click.echo(f"{name}: interrupted; what was done until then stays", err=True)
            return EXIT_INTERRUPTED
        click.echo("nothing was done", err=True)
    except BookKeeperError as error:
        click.echo(f"{name}: {error}", err=True)
    except OSError as error:
        click.echo(f"{name}: {error.filename or 'the system'}: {error.strerror or error}", err=True)
    else:
        return code if isinstance(code, int) else 0
    return EXIT_FAILED


def _reader_left() -> bool:
    """Return whether standard output is a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(STDOUT, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _told(error: click.UsageError) -> str:
    """Return the text of a usage error in words for users."""
    text = error.format_message()
    for theirs, ours in KINDS.items():
        text = text.replace(theirs, ours)
    return text
