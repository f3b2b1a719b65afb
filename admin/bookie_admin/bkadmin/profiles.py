"""Profiles: named clusters in a file of the user, so that one word stands for URI, ports and files.

    [production]
    metadata-service-uri = "zk+hierarchical://zk1:2181/ledgers"
    admin = "10.0.0.5:3182"
    token-file = "/etc/bookie/admin-token"
    [production.client]
    clientTrustStore = "/etc/bookie/ca.pem"

A profile has the options of commands by their names, and settings of the client under `client`. It holds paths of files
with secrets, never a secret.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bookie.errors import ConfigurationError

__all__ = ["chosen", "from_profile", "Profile", "with_profile"]

FILE_VARIABLE = "BOOKIE_PROFILES"
OPTIONS = ("metadata-service-uri", "admin", "token-file", "tls-ca", "tls-cert", "tls-key")
NAMED_BY_CONF = ("uri", "address")
"""The parameters whose values a configuration file has, too."""
SECRETS = ("passwd",)


@dataclass(frozen=True, slots=True)
class Profile:
    """A named cluster.

    Attributes:
        name: its name.
        options: values of options by the names of options.
        client: settings of clients of bookies, by Apache BookKeeper's keys.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, Any] = field(default_factory=dict)


def file_of_profiles() -> Path:
    """Return the path of the file with profiles, which may not exist."""
    given = os.environ.get(FILE_VARIABLE)
    if given:
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "bookie" / "profiles.toml"


def read_profiles(path: Path) -> dict[str, Any]:
    """Return the tables of a file with profiles by name.

    Raises:
        ConfigurationError: the file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(
            f"--profile: {path} cannot be read ({error.strerror}); create it, or name another file in {FILE_VARIABLE}"
        ) from None
    except ValueError as error:
        raise ConfigurationError(f"--profile: {path}: {error}; correct the file") from None


def read_profile(path: Path, name: str) -> Profile:
    """Return a profile of a file.

    Raises:
        ConfigurationError: there is none with this name, or a key or value in it is wrong.
    """
    every = read_profiles(path)
    table = every.get(name)
    if not isinstance(table, dict):
        known = ", ".join(sorted(every)) or "none"
        raise ConfigurationError(f"--profile {name}: there is no such profile in {path}; it has {known}")
    where = f"{path}: profile {name}"
    options = {key: value for key, value in table.items() if key != "client"}
    for key, value in options.items():
        if key not in OPTIONS:
            near = difflib.get_close_matches(key, OPTIONS, n=1)
            hint = f"do you mean {near[0]}?" if near else f"it may have {', '.join(OPTIONS)} and a table `client`"
            raise ConfigurationError(f"{where}: {key}: no such key; {hint}")
        if not isinstance(value, str):
            raise ConfigurationError(f"{where}: {key}={value!r}: it must be a text in quotes")
    client = table.get("client", {})
    if not isinstance(client, dict):
        raise ConfigurationError(f"{where}: client={client!r}: it must be a table, [{name}.client]")
    for key in SECRETS:
        if key in client:
            raise ConfigurationError(f"{where}: client.{key}: a profile holds no secrets; remove it")
    return Profile(name, options, client)


def _names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Complete the name of a profile."""
    try:
        found = read_profiles(file_of_profiles())
    except ConfigurationError:  # a shell shows nothing but words
        return []
    return sorted(name for name in found if name.startswith(begun))


def _read(_context: click.Context, _parameter: click.Parameter, name: str | None) -> Profile | None:
    return None if name is None else read_profile(file_of_profiles(), name)


with_profile = click.option(
    "--profile", envvar="BOOKIE_PROFILE", metavar="NAME", callback=_read, shell_complete=_names,
    help="A named cluster of ~/.config/bookie/profiles.toml, in place of the variables below.  [env: BOOKIE_PROFILE]",
)  # fmt: skip
"""The option of the whole program."""


def chosen(context: click.Context | None = None) -> Profile | None:
    """Return the profile that the command line or the environment names, or None."""
    context = context or click.get_current_context(silent=True)
    found = context.find_root().params.get("profile") if context is not None else None
    return found if isinstance(found, Profile) else None


def from_profile(parameter: str, option: str, value: Any) -> Any:
    """Return the value of an option: that of the command line, or else that of the profile if there is one.

    Args:
        parameter: the name of the parameter of the present command.
        option: the name of the option in profiles.
        value: what click found, possibly in the environment. A profile replaces that, and a --conf on the command line
            stands for its own cluster and bookie, not for those of the environment.
    """
    profile, source = chosen(), click.get_current_context().get_parameter_source
    if source(parameter) is ParameterSource.COMMANDLINE:
        return value
    if profile is not None:
        return profile.options.get(option)
    return None if parameter in NAMED_BY_CONF and source("conf") is ParameterSource.COMMANDLINE else value
