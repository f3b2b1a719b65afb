"""Test how much a miss reads (cache.readahead): as configured, or less while entries leave the cache unused."""

from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.cache.readahead import ReadaheadLimits

FULL = 1024
LEAST = 16
JUDGE = 1000
EVICTIONS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1200), st.floats(0, 1)).map(
        lambda drawn: (drawn[0], drawn[1], int(drawn[1] * drawn[2]))
    ),
    max_size=200,
)


class Model:
    """Implement the same rules in plain Python."""

    def __init__(self) -> None:
        self.scale, self.setting = FULL, 0
        self.wasteful = False
        self.gone = self.unused = 0

    def evicted(self, setting: int, size: int, unused: int) -> None:
        """Count a page that was evicted."""
        if setting != self.setting:
            return
        self.gone += size
        self.unused += unused
        if self.gone < JUDGE:
            return
        scale = self.scale
        if self.unused > self.gone // 4:
            scale, self.wasteful = max(scale // 2, LEAST), True
        elif self.unused < self.gone // 16:
            scale, self.wasteful = min(scale + scale // 4, FULL), False
        if scale != self.scale:
            self.scale, self.setting = scale, self.setting + 1
        self.gone = self.unused = 0


@given(evictions=EVICTIONS)
def test_like_the_model(evictions: list[tuple[int, int, int]]) -> None:
    """Any pages, read with the present or an earlier setting, give the model's limits."""
    model = Model()
    real = ReadaheadLimits(1 << 20, 1000, adaptive=True, judge_bytes=JUDGE)
    for back, size, unused in evictions:
        setting = max(model.setting - back, 0)
        real.evicted(setting, size, unused)
        model.evicted(setting, size, unused)
        assert real.limits() == ((1 << 20) * model.scale // FULL, max(1000 * model.scale // FULL, 16), model.setting)
        assert real.wasteful() == model.wasteful


def test_fixed_unless_it_is_asked_for() -> None:
    """Without adaptive readahead, waste changes no limits and only stops reading before entries are requested."""
    real = ReadaheadLimits(1 << 20, 1000, adaptive=False, judge_bytes=JUDGE)
    for _ in range(50):
        real.evicted(0, 500, 500)
    assert real.limits() == (1 << 20, 1000, 0)
    assert real.wasteful()
    for _ in range(4):
        real.evicted(0, 500, 0)
    assert not real.wasteful()


def test_down_to_the_least_and_back() -> None:
    """If everything is wasted, limits fall to a sixty-fourth, and they return to the full size when nothing is."""
    real = ReadaheadLimits(1 << 20, 1000, adaptive=True, judge_bytes=JUDGE)
    for _ in range(100):
        real.evicted(real.limits()[2], 500, 500)
    assert real.limits()[:2] == ((1 << 20) // 64, 16)
    for _ in range(100):
        real.evicted(real.limits()[2], 500, 0)
    assert real.limits()[:2] == (1 << 20, 1000)


def test_never_nothing() -> None:
    """A limit of one entry or byte never becomes 0."""
    real = ReadaheadLimits(1, 1, adaptive=True, judge_bytes=JUDGE)
    for _ in range(20):
        real.evicted(real.limits()[2], 500, 500)
    assert real.limits()[:2] == (1, 1)
