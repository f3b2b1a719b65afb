"""Tests both sides of SASL DIGEST-MD5 with each other: who is let in, and what a message can be used for."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.auth.provider import AuthenticationFailed, Outcome
from bookie.auth.sasl import SaslClient, SaslServer, server
from bookie.auth.settings import AuthSettings
from bookie.errors import ConfigurationError

USERS = {"bookkeeper": "sésame", "tail-bookkeeper": "字", "other": "pässword"}
ANY = re.compile(".*", re.DOTALL)


def provider(users: dict[str, str] = USERS, allowed: re.Pattern[str] = ANY) -> SaslServer:
    """Make a bookie's side."""
    return SaslServer(users, allowed)


def log_in(bookie: SaslServer, client: SaslClient) -> Outcome:
    """Run the whole conversation, and check that both sides accept it."""
    there, here = bookie.session("127.0.0.1:1"), client.session("bookie")
    challenge = there.process(here.first())
    assert challenge.token is not None
    assert challenge.principal is None
    response = here.answer(challenge.token)
    assert response is not None
    outcome = there.process(response)
    assert outcome.token is not None
    assert here.answer(outcome.token) is None
    assert here.done
    return outcome


@pytest.mark.parametrize("user", USERS)
def test_who_knows_the_password_gets_in(user: str) -> None:
    """The client also has proof that the bookie knows the password too."""
    assert log_in(provider(), SaslClient(user, USERS[user])).principal == user


@given(st.text(min_size=1, max_size=10), st.text(min_size=1, max_size=10), st.text(min_size=1, max_size=10))
def test_only_the_right_password(user: str, password: str, tried: str) -> None:
    """Whatever characters it has, the same password lets the client in and another does not."""
    try:
        (user + password + tried).encode()
    except UnicodeEncodeError:
        return
    bookie = provider({user: password})
    if password == tried:
        assert log_in(bookie, SaslClient(user, tried)).principal == user
    else:
        with pytest.raises(AuthenticationFailed, match="the user or the password is wrong"):
            log_in(bookie, SaslClient(user, tried))


def test_an_unknown_user_is_told_the_same_as_a_wrong_password() -> None:
    """So nobody can learn which users exist."""
    for client in (SaslClient("nobody", "x"), SaslClient("other", "x")):
        with pytest.raises(AuthenticationFailed, match=r"^the user or the password is wrong$"):
            log_in(provider(), client)


def test_the_name_must_be_allowed_as_a_whole() -> None:
    """A name of which only a part matches is refused."""
    bookie = provider(allowed=re.compile("bookkeeper"))
    assert log_in(bookie, SaslClient("bookkeeper", USERS["bookkeeper"])).principal == "bookkeeper"
    with pytest.raises(AuthenticationFailed, match="saslJaasClientAllowedIds"):
        log_in(bookie, SaslClient("tail-bookkeeper", USERS["tail-bookkeeper"]))


def test_a_response_is_good_for_one_challenge() -> None:
    """A response replayed on another connection is refused, and so is a response without a challenge."""
    bookie, client = provider(), SaslClient("other", USERS["other"]).session("bookie")
    first = bookie.session("")
    token = first.process(b"").token
    assert token is not None
    response = client.answer(token)
    assert response is not None
    assert first.process(response).principal == "other"
    second = bookie.session("")
    second.process(b"")
    with pytest.raises(AuthenticationFailed, match="not for this challenge"):
        second.process(response)
    with pytest.raises(AuthenticationFailed, match="before there was a challenge"):
        bookie.session("").process(response)


def test_a_bookie_that_does_not_know_the_password_is_not_trusted() -> None:
    """The client checks the last message."""
    client = SaslClient("other", "right").session("bookie")
    token = provider().session("").process(b"").token
    assert token is not None
    client.answer(token)
    with pytest.raises(AuthenticationFailed, match="not trustworthy"):
        client.answer(b"rspauth=" + b"0" * 32)
    assert not client.done


def test_users_come_from_the_jaas_file(tmp_path: Path) -> None:
    """They come from the bookies' section, where a prefix marks them as users."""
    file = tmp_path / "jaas.conf"
    file.write_text('Bookie {\n  some.Module required\n    user_bookkeeper="x y"\n    debug=true;\n};\n')
    bookie = server(AuthSettings(jaas_file=str(file)))
    assert log_in(bookie, SaslClient("bookkeeper", "x y")).principal == "bookkeeper"
    assert "x y" not in repr(bookie)


@pytest.mark.parametrize(
    ("settings", "text", "why"),
    [
        ({}, None, "saslJaasConfigFile"),
        ({}, "Bookie { a.B required; };", "has no user"),
        ({"jaas_section": "Other"}, 'Bookie { a.B required user_a="s3cret"; };', "section Other is missing"),
        ({"allowed_ids": "("}, 'Bookie { a.B required user_a="s3cret"; };', "saslJaasClientAllowedIds"),
    ],
)
def test_wrong_configurations_are_named(tmp_path: Path, settings: dict[str, str], text: str | None, why: str) -> None:
    """Each wrong configuration raises an error of its own that shows no secret of the file."""
    file = tmp_path / "jaas.conf"
    if text is not None:
        file.write_text(text)
        settings = {"jaas_file": str(file), **settings}
    with pytest.raises(ConfigurationError, match=why) as refused:
        server(AuthSettings(**settings))
    assert "s3cret" not in str(refused.value)


def test_a_file_that_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A known user stays known while the password is the same. A bad file changes nothing and is logged once."""

    def users(**passwords: str) -> None:
        options = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
        file.write_text(f"Bookie {{ a.B required {options}; }};")

    file = tmp_path / "jaas.conf"
    users(one="first", two="second")
    bookie = server(AuthSettings(jaas_file=str(file), allowed_ids=".*"))
    one, two = log_in(bookie, SaslClient("one", "first")), log_in(bookie, SaslClient("two", "second"))
    assert "first" not in repr(one)
    users(one="first", two="another", three="third")
    assert bookie.refresh()
    assert [bookie.knows(one), bookie.knows(two)] == [True, False]
    assert log_in(bookie, SaslClient("three", "third")).principal == "three"
    file.write_text("Bookie { a.B required; };")
    assert [bookie.refresh(), bookie.refresh()] == [False, False]
    assert caplog.text.count("cannot be used") == 1
    assert log_in(bookie, SaslClient("two", "another")).principal == "two"
