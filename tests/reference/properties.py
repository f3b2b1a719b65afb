"""java.util.Properties as a state machine over characters: the short and slow oracle of `configuration.properties`."""

BLANK = " \t\f"


def logical_lines(text: str) -> list[str]:
    """Return lines as (text with escapes still in it), with comments and blanks dropped and continued lines joined."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines, current, started, position = [], "", False, 0
    naturals = text.split("\n")
    while position < len(naturals):
        line = naturals[position]
        position += 1
        while line and line[0] in BLANK:
            line = line[1:]
        if not started and (line == "" or line[0] in "#!"):
            continue
        odd = False
        for character in line:
            odd = character == "\\" and not odd
        if odd:
            current, started = current + line[:-1], True
            continue
        if current + line:
            lines.append(current + line)
        current, started = "", False
    if current:
        lines.append(current)
    return lines


def split(line: str) -> tuple[str, str]:
    """Return (key, value), both still escaped."""
    position, escaped = 0, False
    while position < len(line):
        character = line[position]
        if not escaped and character in "=:" + BLANK:
            break
        escaped = character == "\\" and not escaped
        position += 1
    key, rest = line[:position], line[position:]
    while rest and rest[0] in BLANK:
        rest = rest[1:]
    if rest and rest[0] in "=:":
        rest = rest[1:]
        while rest and rest[0] in BLANK:
            rest = rest[1:]
    return key, rest


def unescape(text: str) -> str:
    """Replace the escapes. Raises ValueError on a bad unicode escape."""
    units, position = [], 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            units.append(character)
            continue
        character = text[position]
        position += 1
        if character == "u":
            digits = text[position : position + 4]
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise ValueError(digits)
            units.append(chr(int(digits, 16)))
            position += 4
        else:
            units.append({"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(character, character))
    return "".join(units).encode("utf-16-be", "surrogatepass").decode("utf-16-be")


def load(text: str) -> list[tuple[str, str]]:
    """Return all (key, value) pairs in order. Raises ValueError where java.util.Properties or UTF-16 refuses."""
    pairs = []
    for line in logical_lines(text):
        key, value = split(line)
        pairs.append((unescape(key), unescape(value)))
    return pairs
