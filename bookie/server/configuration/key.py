"""One key of the configuration file: type, default, range, unit, meaning, and how its text becomes a value. Pure."""

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Group", "Key", "Value"]

WHOLE = re.compile(r"-?[0-9]{1,19}")
DECIMAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
Value = bool | int | float | str | tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """A configuration key. `default` is written as in a file.

    An empty default means unset; a `required` key has no default.
    """

    name: str
    field: str
    """`part.field` of Settings, or several separated by spaces; "" if `loader` computes the field itself."""
    kind: type
    default: str
    doc: str
    low: float = 0
    high: float = 2**31 - 1
    unit: str = ""
    scale: int = 1
    multiple: int = 1
    choices: tuple[str, ...] = ()
    required: bool = False
    differs: str = ""
    old: str = ""

    def parse(self, text: str) -> Value:
        """Return the value of `text` in the unit of the field. Raise ValueError(reason, remedy) if it is invalid."""
        if self.required and not text:
            raise ValueError("it must be set", f"set it to {self.expects()}")
        if self.kind is bool:
            return self._bool(text)
        if self.kind is tuple:
            return tuple(Path(part.strip()).absolute() for part in text.split(",") if part.strip())
        if self.kind is str:
            return self._text(text)
        return self._number(text)

    def expects(self) -> str:
        """Return a description of valid values, for error texts and the reference."""
        if self.kind is bool:
            return "true or false"
        if self.kind is tuple:
            return "one directory, or several separated by commas"
        if self.kind is str:
            return " or ".join(self.choices) or "a text"
        number = "a whole number" if self.kind is int else "a number"
        multiple = f", a multiple of {self.multiple}" if self.multiple > 1 else ""
        unit = f" {self.unit}" if self.unit else ""
        low, high = (str(end) if isinstance(end, int) else f"{end:.10g}" for end in (self.low, self.high))
        return f"{number} from {low} to {high}{unit}{multiple}"

    def _bool(self, text: str) -> bool:
        if text.lower() not in ("true", "false", "yes", "no", "on", "off"):
            raise ValueError("it is neither true nor false", "set it to true or false")
        return text.lower() in ("true", "yes", "on")

    def _text(self, text: str) -> str:
        if self.choices and text.lower() not in self.choices:
            raise ValueError("it is not a known value", f"set it to {self.expects()}")
        return text.lower() if self.choices else text

    def _number(self, text: str) -> int | float:
        if not (WHOLE if self.kind is int else DECIMAL).fullmatch(text):
            raise ValueError(f"it is not a {'whole ' * (self.kind is int)}number", f"set it to {self.expects()}")
        value = int(text) if self.kind is int else float(text)
        if not self.low <= value <= self.high or (self.multiple > 1 and value % self.multiple):
            raise ValueError("it is out of range", f"set it to {self.expects()}")
        return value * self.scale if value > 0 else value


@dataclass(frozen=True, slots=True)
class Group:
    """The keys under one heading of the reference."""

    title: str
    keys: tuple[Key, ...]
