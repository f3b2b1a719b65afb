"""Options that several jobs of `bkpipe` have, each spelled once. Loads nothing but click."""

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
    """KEY=VALUE, again and again: what an option's callback makes of it."""
    found = {}
    for one in values:
        key, equals, value = one.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{one!r} is not KEY=VALUE", param=option)
        found[key.strip()] = value
    return found


def ledgers_option(default: str = "all") -> Option:
    """`ledgers`, a text of ids and ranges; "" for what the default tells of."""
    text = f"Only these: 12,15-18.  [default: {default}]"
    return click.option("--ledgers", default="", metavar="IDS", help=text)


def unit_option(default: int, what: str = "Ledgers") -> Option:
    """`unit`: by how many work is noted as done."""
    text = f"{what} that are done at once."
    return click.option("--unit", type=click.IntRange(1), default=default, show_default=True, help=text)


def target_option(text: str, *, required: bool = False) -> Option:
    """`target`: the directory that is written; None where it may be left out."""
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option("--to", "target", required=required, type=kind, help=text)


def format_option(what: str) -> Option:
    """`kind`: how tables are written."""
    return click.option(
        "--format",
        "kind",
        type=click.Choice(("parquet", "json")),
        default="parquet",
        show_default=True,
        help=f"Of {what}.",
    )


def uri_option(text: str) -> Option:
    """`uri` of the cluster's metadata, or None."""
    return click.option(
        "-u",
        "--metadata-service-uri",
        "uri",
        envvar="BOOKIE_METADATA_URI",
        metavar="URI",
        help=f"The cluster's metadata: {text}.  [env: BOOKIE_METADATA_URI]",
    )


def password_option(text: str) -> Option:
    """`password` of ledgers, a text."""
    return click.option(
        "--password",
        envvar="BOOKIE_PASSWORD",
        default="",
        metavar="TEXT",
        help=f"{text}; better in the environment.  [env: BOOKIE_PASSWORD]",
    )


def _settings_option(word: str, name: str, text: str) -> Option:
    return click.option(
        word, name, multiple=True, callback=settings_given, metavar="KEY=VALUE", help=f"{text} Repeat it for more."
    )


client_option = _settings_option(
    "--client", "client_settings", "A setting of the BookKeeper client, as diskWeightBasedPlacementEnabled=true."
)
"""`client_settings`, by key."""
conf_option = _settings_option("--conf", "conf", "A setting of Spark, as spark.driver.memory=4g.")
"""`conf`: Spark's own settings, by key."""
