REASONS_SPOKEN: tuple[str, ...]
