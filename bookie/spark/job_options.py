"""Options that several jobs of `bkpipe` share, each defined once. Imports nothing but click."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click

__all__ = [
    "client_option",
    "conf_option",
    "format_option",
    "ledgers_option",
    "password_option",
    "target_option",
    "unit_option",
    "uri_option",
]

Command = Callable[..., int]
Option = Callable[[Command], Command]


def settings_given(_context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Parse the values of a repeated KEY=VALUE option; the callback of such options."""
    found = {}
    for one in values:
        key, equals, value = one.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{one!r} is not of the form KEY=VALUE", param=option)
        found[key.strip()] = value
    return found


def ledgers_option(default: str = "all") -> Option:
    """Add --ledgers; the command receives a text of ids and ranges as `ledgers`, "" for what `default` describes."""
    text = f"Ledger ids and ranges of ids, such as 12,15-18.  [default: {default}]"
    return click.option("--ledgers", default="", metavar="IDS", help=text)


def unit_option(default: int, what: str = "Ledgers") -> Option:
    """Add --unit, the size of a unit of work; the command receives it as `unit`."""
    text = f"{what} in a unit of work, which is recorded as done when it is finished."
    return click.option("--unit", type=click.IntRange(1), default=default, show_default=True, help=text)


def target_option(text: str, *, required: bool = False) -> Option:
    """Add --to, the directory to write to; the command receives it as `target`, None if it is omitted."""
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option("--to", "target", required=required, type=kind, help=text)


def format_option(what: str) -> Option:
    """Add --format, the file format of tables; the command receives it as `kind`."""
    return click.option(
        "--format",
        "kind",
        type=click.Choice(("parquet", "json")),
        default="parquet",
        show_default=True,
        help=f"File format of {what}.",
    )


def uri_option(text: str) -> Option:
    """Add -u, the metadata service URI; the command receives it as `uri`, or None."""
    return click.option(
        "-u",
        "--metadata-service-uri",
        "uri",
        envvar="BOOKIE_METADATA_URI",
        metavar="URI",
        help=f"Metadata store of the cluster: {text}.  [env: BOOKIE_METADATA_URI]",
    )


def password_option(text: str) -> Option:
    """Add --password; the command receives it as `password`, a text."""
    return click.option(
        "--password",
        envvar="BOOKIE_PASSWORD",
        default="",
        metavar="TEXT",
        help=f"{text}; preferably set it in the environment.  [env: BOOKIE_PASSWORD]",
    )


def _settings_option(word: str, name: str, text: str) -> Option:
    return click.option(
        word, name, multiple=True, callback=settings_given, metavar="KEY=VALUE", help=f"{text} May be repeated."
    )


client_option = _settings_option(
    "--client", "client_settings", "A setting of the BookKeeper client, such as diskWeightBasedPlacementEnabled=true."
)
"""Adds --client; the command receives the settings by key as `client_settings`."""
conf_option = _settings_option("--conf", "conf", "A setting of Spark, such as spark.driver.memory=4g.")
"""Adds --conf; the command receives Spark's settings by key as `conf`."""
