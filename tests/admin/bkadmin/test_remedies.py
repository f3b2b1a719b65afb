"""Messages that name a bkadmin command as the remedy name one that exists, with options that it has."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from bookie_admin.bkadmin.catalogue import COMMANDS
from bookie_admin.bkadmin.main import bkadmin

ROOT = Path(__file__).resolve().parents[3]
NAMED = re.compile(r"bkadmin ([a-z][a-z_-]*)((?: -{1,2}[a-z][a-z-]*)*)")


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield all strings, including f-strings and docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "VALUE" for part in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_what_messages_tell_to_run_exists() -> None:
    """This holds for the server, the client and bkadmin itself."""
    context, seen = click.Context(bkadmin), set()
    for path in [*ROOT.glob("bookie/**/*.py"), *ROOT.glob("admin/**/*.py")]:
        for text in texts(ast.parse(path.read_text())):
            for name, options in NAMED.findall(text):
                assert name in COMMANDS, f"{path}: bkadmin {name}"
                seen.add(name)
                found = bkadmin.get_command(context, name)
                assert found is not None
                known = {option for one in found.params for option in (*one.opts, *one.secondary_opts)}
                assert set(options.split()) <= known, f"{path}: bkadmin {name}{options}"
    assert {"cookie_create", "updatecookie", "recover"} <= seen
