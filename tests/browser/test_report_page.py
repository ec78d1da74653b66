"""`report.html` in a real browser, opened from a file.

`CI_EVAL_BROWSER` names a Chromium, and `CI_EVAL_AXE` axe-core's script.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile.batches import BATCHES
from hostile.corpus import CORPUS
from hostile.fields import FIELDS, a_report, in_some
from support.case_language import did
from support.project import turn
from support.report_language import EVIDENCE, make_report, make_results, streamed

from ci_eval.records.results import JudgeUsage, Run
from ci_eval.reporters._case_changes import page_of_case
from ci_eval.reporters.html import Html
from ci_eval.run_files.journal import trace_line
from ci_eval.runtime.context import RunContext

CHROMIUM = os.environ.get("CI_EVAL_BROWSER", "")
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="CI_EVAL_BROWSER names no browser"),
    pytest.mark.processes,
]
CASES = " / ".join(
    ["refunds fail 0.2 was 0.9", "stuck error", *(f"c{n:03} pass 1.0" for n in range(250))]
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


class Opened:
    """A page, with everything that it asked for and complained about."""

    def __init__(self, browser: Any, file: Path, fragment: str = "", **options: Any) -> None:
        self.tab = browser.new_context(**options).new_page()
        self.requests: list[str] = []
        self.messages: list[str] = []
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("console", lambda message: self.messages.append(message.text))
        self.tab.on("pageerror", lambda error: self.messages.append(str(error)))
        self.tab.on("dialog", lambda dialog: self.messages.append(f"dialog: {dialog.message}"))
        self.address = file.as_uri() + fragment
        self.tab.goto(self.address)
        if options.get("java_script_enabled", True):
            self.tab.wait_for_selector("html[data-ready]", state="attached")

    def assert_quiet(self) -> None:
        """Nothing but the file was asked for, and nothing was refused."""
        assert self.requests == [self.address.partition("#")[0]]
        assert self.messages == []

    def violations(self) -> list[tuple[str, str]]:
        """Return what axe-core finds, with the first element."""
        self.tab.evaluate(Path(os.environ["CI_EVAL_AXE"]).read_text(encoding="utf-8") + ";0")
        found = self.tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]]

    def fits(self) -> bool:
        """Return True if the page is not wider than the window."""
        return bool(self.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    first, *others = make_results(CASES, EVIDENCE)
    results = [first.model_copy(update={"tags": ("refund", "vip")}), *others]
    path.write_text("".join(Html().render(make_report(CASES), streamed(results))), "utf-8")
    return path


def rows(page: Opened) -> list[str]:
    return [each.inner_text() for each in page.tab.query_selector_all("#list tbody th a")]


def test_the_list_is_filtered_sorted_and_searched(chromium: Any, file: Path) -> None:
    page = Opened(chromium, file)
    assert "Failed" in page.tab.inner_text("#verdict")
    assert rows(page)[:2] == ["refunds", "stuck"]
    assert len(rows(page)) == 100
    page.tab.select_option("#show", "errors")
    assert rows(page) == ["stuck"]
    page.tab.select_option("#show", "")
    page.tab.select_option("#tag", "vip")
    assert rows(page) == ["refunds"]
    page.tab.select_option("#tag", "")
    page.tab.fill("input[type=search]", "c24")
    assert rows(page) == [f"c24{n}" for n in range(10)]
    page.tab.click("th button:has-text('Case')")
    page.tab.click("th button:has-text('Case')")
    assert rows(page)[0] == "c249"
    page.assert_quiet()


def test_a_text_in_a_conversation_is_found_with_enter(chromium: Any, file: Path) -> None:
    page = Opened(chromium, file)
    page.tab.fill("input[type=search]", "no answer within")
    assert rows(page) == []
    page.tab.press("input[type=search]", "Enter")
    page.tab.wait_for_selector("#list tbody a")
    assert rows(page) == ["stuck"]


def test_the_link_of_a_comment_opens_a_case(chromium: Any, tmp_path: Path) -> None:
    name, path = "r/ü 1% 'x'", tmp_path / "report.html"
    report, [result] = make_report("a pass 1.0"), make_results("a pass 1.0")
    key = result.key.model_copy(update={"case": name})
    named = result.model_copy(update={"key": key})
    path.write_text("".join(Html().render(report, streamed([named]))), "utf-8")
    meta = report.meta.model_copy(update={"page_url": path.as_uri()})
    fragment = page_of_case(meta, key.place).partition(".html")[2]
    assert Opened(chromium, path, fragment).tab.inner_text("#case h2") == name


def test_what_a_judge_cites_is_marked_in_the_conversation(chromium: Any, tmp_path: Path) -> None:
    asked = "Do you ship (to\n  Mars) [now]? <b>Reply</b>, please."
    evidence = {"rationale": 'It asks "ship (to Mars) [NOW]" and "<b>Reply</b>", not "(a|b)*+".'}
    [result] = make_results("a fail 0.1", evidence)
    [score] = result.scores
    judged = score.model_copy(update={"judging": JudgeUsage(calls=1)})
    result = result.model_copy(update={"scores": (judged,), "messages": (asked,)})
    path = tmp_path / "report.html"
    path.write_text("".join(Html().render(make_report("a fail 0.1"), streamed([result]))), "utf-8")
    page = Opened(chromium, path, "#case=support%2Fsmoke%2Fa")
    marks = page.tab.eval_on_selector_all("#case mark", "all => all.map(one => one.textContent)")
    assert marks == ["ship (to\n  Mars) [now]", "<b>Reply</b>"]
    assert asked in page.tab.text_content("#case .bubble")
    assert page.violations() == []
    page.assert_quiet()


def test_a_case_of_several_trials_says_how_they_spread(chromium: Any, tmp_path: Path) -> None:
    low, high = make_results("a fail 0.25 / b pass 0.75")
    again = low.key.model_copy(update={"repeat": 1})
    results = [low, high.model_copy(update={"key": again})]
    path = tmp_path / "report.html"
    path.write_text("".join(Html().render(make_report("a fail 0.25"), streamed(results))), "utf-8")
    page = Opened(chromium, path, "#case=support%2Fsmoke%2Fa")
    assert "quality 0.250 to 0.750 in 2 trials" in page.tab.inner_text("#case")
    assert page.violations() == []


def test_a_case_says_what_was_mocked_waited_for_and_replayed(chromium: Any, tmp_path: Path) -> None:
    [result] = make_results("a pass 1.0")
    judged = result.scores[0].model_copy(update={"judging": JudgeUsage(calls=1, cached=2)})
    result = result.model_copy(update={"scores": (judged,), "mocked": ("refund", "track")})
    waits = {**turn("Refund it.", "I have to ask."), "waits_for": [{"name": "approve"}]}
    trace = did(waits).model_copy(update={"key": result.key})
    line = trace_line(trace, duration_s=1.0, attempts=1)
    (tmp_path / "traces.jsonl").write_text(line, "utf-8")
    report = make_report("a pass 1.0")
    run = Run(report.meta, streamed([result]), tmp_path / "traces.jsonl")
    path = tmp_path / "report.html"
    path.write_text("".join(Html().of_run(report, run)), "utf-8")
    page = Opened(chromium, path, "#case=support%2Fsmoke%2Fa")
    said = page.tab.inner_text("#case")
    assert "Mocked tools: refund, track" in said
    assert "Waits for an answer to: approve" in said
    assert "2 of 3 answers from the cache" in said
    assert page.violations() == []


def test_a_style_and_a_template_of_a_repository_are_used(chromium: Any, tmp_path: Path) -> None:
    style = "h2 {\r\n  color: rgb(1, 2, 3);\r}\n/* \0 é */ a { background: url(x.png); }"
    (tmp_path / "own.css").write_bytes(style.encode())
    template = "<h2 onclick='alert(1)'>Ours</h2><script>alert(1)</script><img src=x.png>"
    (tmp_path / "own.html.j2").write_text(template)
    reporter = Html(template="own.html.j2", style="own.css")
    ready = reporter.prepared(RunContext({}, tmp_path, lambda: 0.0))
    path = tmp_path / "report.html"
    path.write_text(
        "".join(ready.render(make_report(CASES), streamed(make_results(CASES)))), "utf-8"
    )
    page = Opened(chromium, path)
    page.tab.click("h2:has-text('Ours')")
    color = "getComputedStyle(document.querySelector('#overview h2')).color"
    assert page.tab.evaluate(color) == "rgb(1, 2, 3)"
    assert len(rows(page)) == 100
    refused = [each for each in page.messages if "Content Security Policy" in each]
    assert page.messages == refused
    assert all(any(kind in each for each in refused) for kind in ("script-src", "img-src"))


def test_a_link_to_another_report_says_so(chromium: Any, file: Path) -> None:
    page = Opened(chromium, file, "#case=support%2Fsmoke%2Fgone&page=-5&sort=__proto__")
    assert "There is no such case in this report." in page.tab.inner_text("#found")
    assert rows(page)[0] == "refunds"
    page.assert_quiet()


def test_a_link_opens_a_case(chromium: Any, file: Path) -> None:
    page = Opened(chromium, file)
    page.tab.click("a:has-text('refunds')")
    page.tab.wait_for_selector("#case:not([hidden]) h2")
    address = page.tab.url
    again = Opened(chromium, file, address.partition(".html")[2])
    assert again.tab.inner_text("#case h2") == "refunds"
    assert again.tab.inner_text("#reproduce") == "ci-eval run --case refunds"
    assert "0.900 → 0.200" in again.tab.inner_text("#case")
    assert not again.tab.is_visible("#list")
    again.assert_quiet()


def test_the_keyboard_is_enough(chromium: Any, file: Path) -> None:
    tab = Opened(chromium, file).tab
    for key in ("j", "j", "k", "Enter"):
        tab.keyboard.press(key)
    tab.wait_for_selector("#case:not([hidden]) h2:has-text('refunds')")
    tab.keyboard.press("j")
    tab.wait_for_selector("#case h2:has-text('stuck')")
    tab.keyboard.press("Escape")
    tab.wait_for_selector("#cases:not([hidden])")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "q"
    tab.keyboard.press("Escape")
    tab.keyboard.press("?")
    assert tab.is_visible("#help")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", ["", "#case=support%2Fsmoke%2Frefunds"])
@pytest.mark.parametrize("width", [1280, 360])
def test_everybody_can_use_it(
    chromium: Any, file: Path, scheme: str, fragment: str, width: int
) -> None:
    viewport = {"width": width, "height": 800}
    page = Opened(chromium, file, fragment, color_scheme=scheme, viewport=viewport)
    assert page.tab.is_visible("#case") is bool(fragment)
    assert page.violations() == []
    assert page.fits()


@pytest.mark.slow
@pytest.mark.parametrize(
    "fragment", ["", "#case=support%2Fsmoke%2Frefunds", "#page=77&show=passed"]
)
def test_everybody_can_use_a_page_of_ten_thousand_cases(
    chromium: Any, tmp_path: Path, fragment: str
) -> None:
    [template] = make_results("a pass 1.0")
    keys = (template.key.model_copy(update={"case": f"case {n}"}) for n in range(10_000))
    many = [template.model_copy(update={"key": key}) for key in keys]
    path = tmp_path / "report.html"
    found = Html().render(make_report(CASES), streamed([*make_results(CASES, EVIDENCE), *many]))
    path.write_text("".join(found), "utf-8")
    page = Opened(chromium, path, fragment)
    assert page.violations() == []
    assert page.fits()
    page.assert_quiet()


def test_without_scripts_there_are_verdict_criteria_and_failures(chromium: Any, file: Path) -> None:
    page = Opened(chromium, file, java_script_enabled=False)
    assert "Failed" in page.tab.inner_text("#verdict")
    assert page.tab.is_visible("details:has-text('refunds')")
    assert not page.tab.is_visible("#list")
    assert "With scripts, this page also lists all 252 cases" in page.tab.inner_text("noscript")
    page.assert_quiet()


def test_it_prints(chromium: Any, file: Path) -> None:
    page = Opened(chromium, file)
    assert page.tab.pdf().startswith(b"%PDF")
    page.tab.emulate_media(media="print")
    assert not page.tab.is_visible("#filters")


@pytest.mark.parametrize("batch", BATCHES)
def test_hostile_texts_are_only_text(chromium: Any, tmp_path: Path, batch: str) -> None:
    path, texts = tmp_path / "report.html", [CORPUS[name] for name in BATCHES[batch]]
    for shift in range(3):
        # Each field has another text, and in each turn another one again.
        fields = {name: texts[(shift + n) % len(texts)] for n, name in enumerate(FIELDS)}
        told = a_report(in_some(fields))
        path.write_text("".join(Html().render(told.report, streamed(told.results))), "utf-8")
        page = Opened(chromium, path)
        page.tab.evaluate("document.querySelector('#list tbody a').click()")
        page.tab.wait_for_selector("#case:not([hidden]) h2", state="attached")
        assert page.tab.evaluate(FOREIGN) == []
        page.assert_quiet()
        page.tab.context.close()


FOREIGN = """() => [...document.querySelectorAll("*")].filter((each) =>
  /^(img|iframe|object|embed|link|base|video|audio|form|input)$/i.test(each.tagName)
    && !each.closest("#filters, #help")
  || [...each.attributes].some((one) => /^(on|style$|srcdoc$)/.test(one.name))
  || each.tagName === "A" && !each.getAttribute("href").startsWith("#")
  || each.tagName === "SCRIPT" && !each.id && each.type !== "module"
).map((each) => each.outerHTML.slice(0, 200))"""
