"""Errors of the server's own start, and how any error is spelt on one line. The tree is `bookie.errors`."""

from bookie.errors import ConfigurationError

__all__ = ["ConfigError", "one_line"]


class ConfigError(ConfigurationError):
    """One setting is wrong. The text names key, value, where it came from, reason and remedy."""

    def __init__(self, key: str, value: str, reason: str, remedy: str, origin: str = "") -> None:
        self.key, self.value, self.reason, self.remedy, self.origin = key, value, reason, remedy, origin
        where = f" ({origin})" if origin else ""
        super().__init__(f"{key}={value}{where}: {reason}; {remedy}")


def one_line(error: BaseException) -> str:
    """The error's text on a single line; the class name where it has none."""
    return " ".join(str(error).split()) or type(error).__name__
