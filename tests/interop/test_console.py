"""The console in a real browser (Debian's Chromium), on three live bookies: each view, each action, keyboard
shortcuts, dark theme, narrow windows.

Pictures are written to the directory that BOOKIE_PICTURES names, else to the test's own.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bookie.client import BookKeeper
from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from tests.admin.http.conftest import Cluster
from tests.fixtures.bookies import BookieProcess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_MS = 20_000
HOSTILE = "<img src=x onerror=document.title='broken'>"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.interop,
    pytest.mark.leaks("gRPC and Playwright keep threads and descriptors as long as the process lives"),
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: make browser"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of this file."""
    with sync_playwright() as playwright:
        expect.set_options(timeout=WAIT_MS)
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The directory for pictures."""
    path = Path(os.environ.get("BOOKIE_PICTURES") or tmp_path / "pictures")
    path.mkdir(parents=True, exist_ok=True)
    return path


LETTERS = "Math.min(...[...document.querySelectorAll('.tick')].map((one) => one.getBoundingClientRect().height))"
"""The height of the smallest letters in charts, in pixels; infinite if there are no charts."""


def opened(browser: Browser, cluster: Cluster, **options: object) -> Page:
    """Open the console in a window of its own. Any error of the page fails the test."""
    page = browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **options}).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(WAIT_MS)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if "Content Security Policy" in line.text else None)
    page.errors = errors  # type: ignore[attr-defined]
    page.goto(f"http://{cluster.bookies[0].planes['http']}/")
    return page


def closed(page: Page) -> None:
    """Check that there were no errors, and close the window."""
    assert page.errors == []  # type: ignore[attr-defined]
    page.context.close()


def act(page: Page, button: str, verb: str, said: str, *, typed: str = "") -> None:
    """Click a button, confirm, and wait for the message about the outcome."""
    page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    go = dialog.get_by_role("button", name=verb, exact=True)
    if typed:
        expect(go).to_be_disabled()
        dialog.get_by_role("textbox").fill(typed)
    go.click()
    expect(page.locator(".toast").filter(has_text=said)).to_be_visible()
    expect(dialog).to_be_hidden()


@pytest.fixture
def three(bookies: Callable[..., list[BookieProcess]]) -> Cluster:
    """Bookies with auto-recovery and some ledgers."""
    cluster = Cluster(bookies(3, httpServerEnabled="true", httpServerPort="0", autoRecoveryDaemonEnabled="true"))
    with BookKeeper(cluster.uri) as bk:
        for number in range(8):
            custom = {"application": b"stream" if number % 2 else HOSTILE.encode(), "part": b"%d" % number}
            with bk.create_ledger(
                ensemble_size=3, write_quorum_size=2, ack_quorum_size=2, password=b"", custom_metadata=custom
            ) as ledger:
                for entry in range(25 * number):
                    ledger.append(
                        f"{HOSTILE} entry {entry} of the ledger \u00e4\u00f6\u00fc \u202e".encode() * (1 + entry % 3)
                    )
        bk.logs.create("orders/eu", range(3, 8))
        bk.logs.create(HOSTILE)
    return cluster


def test_every_view_and_action(browser: Browser, three: Cluster, pictures: Path) -> None:
    """An operator's way through the console, with pictures in light, dark and phone size."""
    page = opened(browser, three, color_scheme="light")
    expect(page.get_by_role("table", name="Bookies").or_(page.locator("table")).first).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.locator("tbody .pill.good")).to_have_count(3)
    expect(page.locator(".plot .line").first).to_be_attached()
    page.screenshot(path=pictures / "cluster-light.png", full_page=True)
    _this_bookie(page, pictures)
    _ledgers(page, pictures)
    _logs(page, pictures)
    _recovery_and_configuration(page, pictures)
    _keys(page)
    assert "broken" not in page.title()
    closed(page)
    for name, options in (
        ("dark", {"color_scheme": "dark", "viewport": {"width": 1400, "height": 900}}),
        ("narrow", {"color_scheme": "light", "viewport": {"width": 420, "height": 900}}),
    ):
        page = opened(browser, three, **options)
        for view in (
            "overview",
            "bookie",
            "ledgers",
            "ledger/5",
            "logs",
            "log/orders%2Feu",
            "recovery",
            "configuration",
        ):
            page.goto(page.url.split("#")[0] + f"#/{view}")
            expect(page.locator(".card").first).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
            if view.startswith("ledger/"):
                expect(page.locator(".entry").first).to_be_visible()
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{view} is wider than the {name} window by {wide}"
            assert page.evaluate(LETTERS) >= 10, f"letters of {view}'s charts in the {name} window"
            page.screenshot(path=pictures / f"{view.replace('/', '-')}-{name}.png", full_page=True)
        closed(page)


def _this_bookie(page: Page, pictures: Path) -> None:
    page.get_by_role("link", name="This bookie").click()
    expect(page.locator(".plot")).to_have_count(8)
    act(page, "Make read-only…", "Make read-only", "The bookie is read-only")
    expect(page.locator("#status .pill.warn")).to_have_text("read-only")
    act(page, "Make writable…", "Make writable", "The bookie is writable")
    expect(page.locator("#status .pill.good")).to_have_text("writable")
    act(page, "Flush now…", "Flush", "The write caches were flushed")
    act(page, "Suspend major…", "Suspend", "Major compaction is suspended")
    act(page, "Resume major…", "Resume", "Major compaction is resumed")
    act(page, "Collect…", "Start", "Garbage collection was started")
    page.screenshot(path=pictures / "bookie-light.png", full_page=True)


def _ledgers(page: Page, pictures: Path) -> None:
    page.get_by_role("link", name="Ledgers", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(8)
    page.get_by_label("Id or metadata").fill("application=stream")
    page.screenshot(path=pictures / "ledgers-light.png", full_page=True)
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody tr")).to_have_count(4)
    expect(page.locator(".sums")).to_contain_text("400 entries")
    page.get_by_label("Id or metadata").fill("nobody has this")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("No matching ledger")).to_be_visible()
    page.get_by_label("Id or metadata").fill("")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody a")).to_have_text([str(number) for number in range(7, -1, -1)])
    page.get_by_role("button", name="Size").click()
    expect(page.locator("tbody a").first).to_have_text("0")
    page.get_by_role("button", name="Size").click()
    expect(page.locator("tbody a").first).to_have_text("7")
    page.get_by_label("Order").select_option("oldest")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("button", name="Ledger").click()
    expect(page.locator("tbody a").first).to_have_text("0")
    page.locator("tbody a").nth(6).click()
    expect(page.get_by_role("heading", name=re.compile(r"^Ledger \d+"))).to_be_visible()
    expect(page.locator(".entry")).to_have_count(20)
    expect(page.locator(".entry pre").first).to_contain_text(HOSTILE)
    assert "\u202e" not in (page.locator(".entry pre").first.text_content() or "")
    page.get_by_role("button", name="Hex").click()
    expect(page.locator(".entry pre").first).to_contain_text("000000  3c 69 6d 67")
    page.get_by_role("button", name="Later").click()
    expect(page.get_by_text("entry 20", exact=True)).to_be_visible()
    page.screenshot(path=pictures / "ledger-light.png", full_page=True)
    ledger = page.url.rsplit("/", 1)[1]
    act(page, "Delete…", "Delete permanently", f"Ledger {ledger} was deleted", typed=ledger)
    expect(page.locator("tbody tr")).to_have_count(7)
    page.get_by_label("Id or metadata").fill("987654321")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("Not found")).to_be_visible()


def _logs(page: Page, pictures: Path) -> None:
    page.get_by_role("link", name="Logs", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("link", name="orders/eu").click()
    expect(page.locator("tbody tr")).to_have_count(5)
    expect(page.locator("tbody .pill.bad")).to_have_text("deleted")
    page.screenshot(path=pictures / "log-light.png", full_page=True)


def _recovery_and_configuration(page: Page, pictures: Path) -> None:
    page.get_by_role("link", name="Recovery").click()
    expect(page.get_by_text("All ledgers are fully replicated")).to_be_visible()
    act(page, "Disable…", "Disable", "Auto-recovery is disabled")
    act(page, "Enable…", "Enable", "Auto-recovery is enabled")
    expect(page.get_by_role("button", name="Audit now…")).to_be_enabled()
    act(page, "Audit now…", "Audit", "Success trigger audit.")
    page.get_by_label("Stopped bookie").fill("nobody:1")
    act(page, "Decommission…", "Decommission", "has no cookie", typed="nobody:1")
    page.screenshot(path=pictures / "recovery-light.png", full_page=True)
    page.get_by_role("link", name="Configuration").click()
    page.get_by_label("Find").fill("httpserverport")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("only the").check()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Find").fill("flushInterval")
    expect(page.locator("tbody tr")).to_have_count(0)


def _keys(page: Page) -> None:
    page.get_by_label("Find").blur()
    page.keyboard.press("1")
    expect(page.get_by_text("Writable", exact=True)).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Id or metadata")).to_be_visible()
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_tokens_roles_and_a_bookie_that_goes(
    browser: Browser, bookies: Callable[..., list[BookieProcess]], tmp_path: Path, pictures: Path
) -> None:
    """The console asks for a token, shows a reader no actions, and says so when the bookie is gone; and that without
    an auditor it is unknown whether replicas are lost.
    """
    tokens = tmp_path / "tokens"
    tokens.write_text("read:viewer:reading-0123456789\n")
    tokens.chmod(0o600)
    cluster = Cluster(bookies(1, httpServerEnabled="true", httpServerPort="0", adminTokensFile=str(tokens)))
    page = opened(browser, cluster)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").last.fill("wrong-0123456789")
    dialog.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign in").click()
    page.screenshot(path=pictures / "token.png")
    dialog.get_by_label("Token").last.fill("reading-0123456789")
    dialog.get_by_role("button", name="Sign in").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator(".tile", has_text="Replication")).to_contain_text("unknown")
    page.get_by_role("link", name="Recovery").click()
    expect(page.get_by_text("No ledger is marked")).to_be_visible()
    page.get_by_role("link", name="This bookie").click()
    expect(page.get_by_role("button", name="read")).to_be_visible()
    expect(page.get_by_role("button", name="Flush now…")).to_have_count(0)
    cluster.bookies[0].kill()
    expect(page.locator("#banner .banner")).to_contain_text("does not answer")
    expect(page.locator("#status .pill.bad")).to_have_text("offline")
    page.screenshot(path=pictures / "gone.png")
    closed(page)


def test_ledger_ids_beyond_the_numbers_of_a_browser(browser: Browser, three: Cluster) -> None:
    """Ids of more than 53 bits are shown, sorted, opened and deleted as they are, and no other ledger is deleted."""
    first, second, third = (1 << 56) + 1, (1 << 56) + 2, (1 << 62) + 1
    metadata = LedgerMetadata(
        ensemble_size=1, write_quorum=1, ack_quorum=1, segments=(Segment(0, (three.bookies[0].id,)),),
        state=LedgerState.CLOSED,
    )  # fmt: skip
    driver = open_driver(three.uri)
    driver.start()
    try:
        for ledger in (first, second, third):
            driver.ledgers.create(ledger, metadata)
        page = opened(browser, three)
        page.goto(page.url.split("#")[0] + "#/ledgers")
        for ledger in (first, second, third):
            expect(page.get_by_role("link", name=str(ledger), exact=True)).to_be_visible()
        page.get_by_role("link", name=str(first), exact=True).click()
        expect(page.get_by_role("heading", name=f"Ledger {first}")).to_be_visible()
        act(page, "Delete…", "Delete permanently", f"Ledger {first} was deleted", typed=str(first))
        with pytest.raises(NoSuchLedgerMetadata):
            driver.ledgers.read(first)
        for ledger in (second, third):
            assert driver.ledgers.read(ledger).value.state is LedgerState.CLOSED
        closed(page)
    finally:
        driver.stop()
