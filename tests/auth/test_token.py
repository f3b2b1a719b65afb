"""Tests of the shared token: it comes from a file or the environment, may be one of several, and is never shown."""

from pathlib import Path

import pytest

from bookie._fast.server import users
from bookie.auth.provider import EVERYTHING, AuthenticationFailed, Right
from bookie.auth.settings import AuthSettings, ClientAuthSettings
from bookie.auth.token import TokenClient, TokenServer, client, server
from bookie.auth.token_file import TOKENS_MAX, parse
from bookie.errors import ConfigurationError

OLD, NEW = b"an-old-token-of-enough-bytes", b"a-new-token-of-enough-bytes-"


def test_each_valid_token_gets_in_and_nothing_else() -> None:
    """Both tokens do while they are being changed; a prefix, a longer token and an empty one do not."""
    session = TokenServer((OLD, NEW)).session("127.0.0.1:1")
    for number, token in enumerate((OLD, NEW), 1):
        outcome = session.process(token)
        assert (outcome.token, outcome.principal) == (b"", f"token:line-{number}")
    for token in (b"", OLD[:-1], NEW + b"x", OLD + NEW):
        with pytest.raises(AuthenticationFailed, match="not one of this bookie's"):
            session.process(token)


def test_the_client_is_done_with_the_first_answer() -> None:
    """The conversation is one message each way."""
    session = TokenClient(OLD).session("bookie")
    assert session.first() == OLD
    assert not session.done
    session.answer(b"")
    assert session.done


def test_tokens_of_a_file(tmp_path: Path) -> None:
    """The file holds one token in each line, apart from comments and blank lines."""
    file = tmp_path / "tokens"
    file.write_text(f"# tokens\n\n{OLD.decode()}\n  {NEW.decode()}  \n")
    provider = server(AuthSettings(token_file=str(file)))
    assert provider.session("").process(NEW).principal
    assert OLD.decode() not in repr(provider)
    assert OLD.decode() not in repr(TokenClient(OLD))


def test_the_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used where no file is named."""
    monkeypatch.setenv("BOOKIE_AUTH_TOKEN", NEW.decode())
    assert server(AuthSettings()).session("").process(NEW).principal


@pytest.mark.parametrize(("text", "why"), [("", "no token"), ("short", "too short"), (None, "cannot be read")])
def test_wrong_files_are_named(tmp_path: Path, text: str | None, why: str) -> None:
    """They are named without anything of their contents."""
    file = tmp_path / "tokens"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigurationError, match=why) as refused:
        server(AuthSettings(token_file=str(file)))
    assert not text or text not in str(refused.value).replace("too short", "")


def test_a_line_says_whose_it_is_and_what_it_may() -> None:
    """S8: a line holds roles and a name, or a token alone as before, which may contain colons. The bits of the roles
    are those of the compiled modules.
    """
    lines = [
        "# ours",
        OLD.decode(),
        "read:" + "r" * 16,
        "write:alice:" + "w" * 16,
        "admin:bob:a:" + "a" * 16,
        "x:" + "y" * 16,
    ]
    found = [(token.name, token.rights, token.secret) for token in parse(lines, "there")]
    assert found == [
        ("line-2", EVERYTHING, OLD),
        ("line-3", Right.READ, b"r" * 16),
        ("alice", Right.READ | Right.WRITE, b"w" * 16),
        ("bob", EVERYTHING, b"a:" + b"a" * 16),
        ("line-6", EVERYTHING, b"x:" + b"y" * 16),
    ]
    assert (Right.READ, Right.WRITE, Right.ADMIN, EVERYTHING) == (users.READ, users.WRITE, users.ADMIN, users.ALL)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("read:short", "line 2 is too short"),
        ("read:a b:" + "x" * 16, "line 2 has an invalid name"),
        ("admin::" + "x" * 16, "line 2 has an invalid name"),
        ("\n".join(["x" * 16] * TOKENS_MAX), "are allowed"),
    ],
)
def test_lines_that_cannot_be_used(line: str, why: str) -> None:
    """They are named by their number, without anything of their contents."""
    with pytest.raises(ConfigurationError, match=why) as refused:
        parse([OLD.decode(), *line.split("\n")], "there")
    assert "xxxx" not in str(refused.value)
    assert OLD.decode() not in str(refused.value)


def test_a_client_sends_the_token_of_the_first_line(tmp_path: Path) -> None:
    """It may also read the bookie's own file."""
    file = tmp_path / "tokens"
    file.write_text(f"write:alice:{NEW.decode()}\n{OLD.decode()}\n")
    assert client(ClientAuthSettings(token_file=str(file))).session("").first() == NEW


def test_a_file_that_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A user who was let in stays known while the token is in the file with the same rights, wherever its line is. A
    bad file changes nothing and is reported once.
    """
    file = tmp_path / "tokens"
    file.write_text(f"{OLD.decode()}\nwrite:alice:{NEW.decode()}\n")
    provider = server(AuthSettings(token_file=str(file)))
    old, alice = provider.process(OLD), provider.process(NEW)
    assert OLD.decode() not in repr(alice)
    file.write_text(f"write:alice:{NEW.decode()}\n#\n#\n{OLD.decode()}\n")
    assert provider.refresh()
    assert provider.knows(old)
    assert provider.knows(alice)
    file.write_text(f"read:alice:{NEW.decode()}\n")
    assert provider.refresh()
    assert not provider.knows(old)
    assert not provider.knows(alice), "it may do less now"
    assert provider.process(NEW).rights == Right.READ
    file.write_text("short")
    assert [provider.refresh(), provider.refresh()] == [False, False]
    assert caplog.text.count("cannot be used") == 1, "told once"
    assert provider.process(NEW).rights == Right.READ
    with pytest.raises(AuthenticationFailed):
        provider.process(OLD)
