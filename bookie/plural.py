"""Numbers with their nouns in messages for people."""

__all__ = ["counted"]


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun: `1 entry`, `2 entries`.

    Args:
        count: How many there are.
        noun: What they are, in the singular.
        plural: The plural if it is neither the singular with an s nor one where ies replaces y.
    """
    if count == 1:
        return f"1 {noun}"
    return f"{count} {plural or (noun[:-1] + 'ies' if noun.endswith('y') else noun + 's')}"
