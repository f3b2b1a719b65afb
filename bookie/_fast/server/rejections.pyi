REASON_WORDS: tuple[str, ...]
REASON_TEXTS: tuple[str, ...]
UNNAMED: str
