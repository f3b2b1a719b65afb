"""The random numbers of tests that draw without hypothesis."""

import os
import random


def seeded_random() -> random.Random:
    """Seeded anew each run, and said so; with BOOKIE_SAME_DRAWS the same every time, as hypothesis draws then."""
    seed = 1 if "BOOKIE_SAME_DRAWS" in os.environ else random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)
