"""The shared token: from a file or the environment, one of several, never shown."""

from pathlib import Path

import pytest

from bookie.auth.provider import AuthenticationFailed
from bookie.auth.settings import AuthSettings
from bookie.auth.token import TokenClient, TokenServer, server
from bookie.errors import ConfigurationError

OLD, NEW = b"an-old-token-of-enough-bytes", b"a-new-token-of-enough-bytes-"


def test_each_valid_token_gets_in_and_nothing_else() -> None:
    """Both while they are being changed; a prefix, a longer one and an empty one do not."""
    session = TokenServer((OLD, NEW)).session("127.0.0.1:1")
    for token in (OLD, NEW):
        outcome = session.process(token)
        assert (outcome.token, outcome.principal) == (b"", "token")
    for token in (b"", OLD[:-1], NEW + b"x", OLD + NEW):
        with pytest.raises(AuthenticationFailed, match="not one of this bookie's"):
            session.process(token)


def test_the_client_is_done_with_the_first_answer() -> None:
    """One message each way."""
    session = TokenClient(OLD).session("bookie")
    assert session.first() == OLD
    assert not session.done
    session.answer(b"")
    assert session.done


def test_tokens_of_a_file(tmp_path: Path) -> None:
    """One a line, comments and blank lines apart."""
    file = tmp_path / "tokens"
    file.write_text(f"# tokens\n\n{OLD.decode()}\n  {NEW.decode()}  \n")
    provider = server(AuthSettings(token_file=str(file)))
    assert provider.session("").process(NEW).principal
    assert OLD.decode() not in repr(provider)
    assert OLD.decode() not in repr(TokenClient(OLD))


def test_the_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no file is named."""
    monkeypatch.setenv("BOOKIE_AUTH_TOKEN", NEW.decode())
    assert server(AuthSettings()).session("").process(NEW).principal


@pytest.mark.parametrize(("text", "why"), [("", "no token"), ("short", "too short"), (None, "cannot be read")])
def test_wrong_files_are_named(tmp_path: Path, text: str | None, why: str) -> None:
    """Without what stands in them."""
    file = tmp_path / "tokens"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigurationError, match=why) as refused:
        server(AuthSettings(token_file=str(file)))
    assert not text or text not in str(refused.value).replace("too short", "")
