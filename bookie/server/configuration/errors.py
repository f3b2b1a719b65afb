"""Errors of the server's start, and any error formatted on one line. `bookie.errors` has the class hierarchy."""

from bookie.errors import ConfigurationError

__all__ = ["ConfigError", "one_line"]


class ConfigError(ConfigurationError):
    """A wrong setting. The text names the key, its value, where that was set, the reason and the remedy."""

    def __init__(self, key: str, value: str, reason: str, remedy: str, origin: str = "") -> None:
        self.key, self.value, self.reason, self.remedy, self.origin = key, value, reason, remedy, origin
        where = f" ({origin})" if origin else ""
        super().__init__(f"{key}={value}{where}: {reason}; {remedy}")


def one_line(error: BaseException) -> str:
    """Return the error's text on a single line, or its class name if it has no text."""
    return " ".join(str(error).split()) or type(error).__name__
