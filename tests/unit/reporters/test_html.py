"""The page of a run: what it holds, and what keeps it to itself."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from lxml import html as lxml_html
from support.case_language import did
from support.project import turn
from support.report_language import EVIDENCE, make_report, make_results, streamed

from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Report
from ci_eval.records.results import Run, TrialResult
from ci_eval.records.trials import Trace
from ci_eval.reporters._html_cases import CHUNK, CaseData
from ci_eval.reporters.html import Html
from ci_eval.run_files.journal import trace_line
from ci_eval.run_files.traces_file import Conversations
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.template_sandbox import MAX_SOURCE

TEXT = "refunds fail 0.2 was 0.9 / greets pass 1.0 / stuck error"


def page(report: Report, results: list[TrialResult], **options: Any) -> str:
    return "".join(Html.model_validate(options).render(report, streamed(results)))


def in_page(text: str, path: str) -> Any:
    [found] = lxml_html.document_fromstring(text).xpath(path)
    return found


def index(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(in_page(text, "//script[@id='index']").text)
    return found


def trials(text: str) -> dict[str, list[dict[str, Any]]]:
    chunks = lxml_html.document_fromstring(text).xpath("//script[starts-with(@id, 'chunk-')]")
    return {
        chunk.get("id").removeprefix("chunk-"): json.loads(
            gzip.decompress(base64.b64decode(chunk.text))
        )
        for chunk in chunks
    }


def test_the_policy_allows_this_script_and_this_style_and_nothing_else() -> None:
    text = page(make_report(TEXT), make_results(TEXT))
    policy = in_page(text, "//meta[@http-equiv='Content-Security-Policy']").get("content")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    for name, tag in (("script-src", 'script type="module"'), ("style-src", "style")):
        [content] = re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules.pop(name) == f"'sha256-{digest}'"
    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "font-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


OWN = """{% import "report/_parts.html.j2" as parts %}
<h2>Owned by the shop's team</h2>
{{ parts.about(page) }}
{{ parts.criteria(page) }}
{% for each in page.charted %}<b>{{ each.row.summary.group.agent }}</b>{% endfor %}
{{ parts.findings(page) }}
{{ parts.notes(page) }}
"""


def own_page(folder: Path, template: str, style: str = "", report: Report | None = None) -> str:
    (folder / "own.html.j2").write_text(template, "utf-8")
    (folder / "own.css").write_text(style, "utf-8")
    reporter = Html(template="own.html.j2", style="own.css")
    ready = reporter.prepared(RunContext({}, folder, lambda: 0.0))
    return "".join(ready.render(report or make_report(TEXT), streamed(make_results(TEXT))))


@pytest.mark.processes
def test_a_template_replaces_what_is_above_the_cases(tmp_path: Path) -> None:
    text = own_page(tmp_path, OWN, "h2 { color: teal; }\n")
    overview = in_page(text, "//section[@id='overview']")
    ours = in_page(page(make_report(TEXT), make_results(TEXT)), "//section[@id='overview']")
    assert overview.find("h2").text == "Owned by the shop's team"
    assert overview.text_content().endswith(ours.text_content()[-300:])
    assert in_page(text, "//style").text.endswith("h2 { color: teal; }\n")
    digest = hashlib.sha256(in_page(text, "//style").text.encode()).digest()
    assert base64.b64encode(digest).decode() in text


@pytest.mark.slow
@pytest.mark.processes
def test_a_template_cannot_show_a_text_as_markup(tmp_path: Path) -> None:
    report = make_report(TEXT)
    named = report.meta.model_copy(update={"suite": "<img src=x>"})
    report = report.model_copy(update={"meta": named})
    for source in (
        "{{ page.meta.suite }}",
        "{{ ('<b>' | escape).unescape() }}{{ page.meta.suite | escape }}",
        "{{ [page.meta.suite] | join('<br>') }}",
    ):
        found = own_page(tmp_path, source, report=report)
        assert "<img" not in found
        assert "&lt;img src=x&gt;" in found


@pytest.mark.processes
@pytest.mark.parametrize(
    ("template", "style", "message"),
    [
        ("{{ page.meta.suite | safe }}", "", "No filter named 'safe'"),
        ("\n{% autoescape false %}{% endautoescape %}", "", "must not change how text is escaped"),
        ("{% include 'judge/safety.j2' %}", "", "only 'report/_parts.html.j2' can be imported"),
        ("{{ rows }}", "", "only 'page' is available"),
        ("", "a { }\n</STYLE><script>", "own.css:2: contains '</STYLE', which ends a style"),
        ("", "x" * (MAX_SOURCE + 1), "the limit for a style sheet"),
    ],
)
def test_a_wrong_template_or_style_stops_before_the_run(
    tmp_path: Path, template: str, style: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        own_page(tmp_path, template, style)
    assert message in str(caught.value.problems[0])


@pytest.mark.processes
def test_where_a_template_fails_the_page_is_ours_and_says_so(tmp_path: Path) -> None:
    text = own_page(tmp_path, "\n{{ page.meta.nope }}")
    said = in_page(text, "//section[@id='overview']/p[@class='warns']").text_content()
    assert said.startswith("! The template own.html.j2:2 failed, so this is the default page:")
    assert in_page(text, "//section[@id='overview']/h2[1]").text == "Criteria"


def test_verdict_criteria_and_failures_need_no_script() -> None:
    text = page(make_report(TEXT), make_results(TEXT, EVIDENCE))
    assert in_page(text, "//*[@id='verdict']").text_content() == (
        "✘ Failed: 1 case broke: refunds (tool calls, response)"
    )
    assert "0.900 → 0.200" in in_page(text, "//details[1][contains(., 'refunds')]").text_content()
    assert in_page(text, "//svg[contains(@aria-label, 'Cases by score')]") is not None


def test_the_index_names_every_case_and_chunks_hold_its_trials() -> None:
    text = page(make_report(TEXT), make_results(TEXT, EVIDENCE))
    found = index(text)
    assert found["id"] == ["refunds", "greets", "stuck"]
    assert (found["status"], found["marks"]) == ("fpe", "b--")
    assert found["scores"] == [[0.2, 1.0, None]]
    assert found["changes"]["0"][0][:3] == ["quality", 0.9, 0.2]
    assert found["trials"] == [[0], [1], [2]]  # even ones did not pass
    bad, passing = trials(text)["0"], trials(text)["1"]
    assert [each["status"] for each in (*bad, *passing)] == ["f", "e", "p"]
    assert bad[0]["scores"][0]["evidence"][1]["words"]
    assert bad[1]["error"][1].startswith("no answer within")


def test_evidence_called_like_a_response_is_no_difference() -> None:
    text = page(make_report(TEXT), make_results(TEXT, {"response_format": "xml"}))
    (shown,) = trials(text)["0"][0]["scores"][0]["evidence"]
    assert (shown["title"], shown["lines"], shown["words"]) == ("Response format", ["xml"], None)


def test_the_same_run_gives_the_same_bytes() -> None:
    report, results = make_report(TEXT), make_results(TEXT, EVIDENCE)
    assert page(report, results) == page(report, results)


def test_conversations_come_from_the_traces_beside_the_run(tmp_path: Path) -> None:
    report, results = make_report(TEXT), make_results(TEXT)
    trace = Trace(key=results[1].key, invocations=did(turn("?", "Hello", ("find", {}))).invocations)
    line = trace_line(trace, duration_s=1.0, attempts=1)
    (tmp_path / "traces.jsonl").write_text(line, encoding="utf-8")
    run = Run(report.meta, streamed(results), tmp_path / "traces.jsonl")
    [told] = trials("".join(Html().of_run(report, run)))["1"][0]["turns"]
    assert told["agent"] == "Hello"
    assert told["calls"][0]["name"] == "find"


def test_trials_before_the_change_stand_beside_those_of_cases_that_changed() -> None:
    report, results = make_report(TEXT), make_results(TEXT)
    before = Run(report.meta, streamed(make_results("refunds pass 0.9 / greets pass 1.0")))
    found = index("".join(Html().of_run(report, Run(report.meta, streamed(results)), before)))
    assert found["before"] == {"0": [4]}
    assert found["trials"] == [[0], [1], [2]]


def test_details_of_passing_trials_are_left_out_first_and_the_page_says_so() -> None:
    text = " / ".join(["bad fail 0.2", *(f"c{n} pass 1.0" for n in range(2 * CHUNK + 1))])
    report, results = make_report(text), make_results(text)
    whole = CaseData(report, 10**9)
    whole.read(results, Conversations(None))
    whole.close()
    assert (sorted(whole.chunks), whole.left_out) == ([0, 1, 3, 5], 0)

    sizes = {number: len(chunk) for number, chunk in whole.chunks.items()}
    less = CaseData(report, sizes[0] + sizes[1])
    less.read(results, Conversations(None))
    less.close()
    assert (sorted(less.chunks), less.left_out) == ([0, 1], CHUNK + 1)


def test_no_text_ends_a_script_or_hides_another() -> None:
    bad = "</script><script>alert(1)</script><!-- \u202e x"
    report = make_report(TEXT)
    results = [each.model_copy(update={"output": bad}) for each in make_results(TEXT)]
    meta = report.meta.model_copy(update={"suite": bad, "agents": (bad,)})
    text = page(report.model_copy(update={"meta": meta}), results)
    assert "alert(1)</script>" not in text
    assert "\u202e" not in text
    assert len(lxml_html.document_fromstring(text).xpath("//script")) == 4


def test_a_damaged_trace_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    [_, result, _] = make_results(TEXT)
    lines = ['{"agent":"x"}\n', "not JSON\n", trace_line(Trace(key=result.key))[:-1]]
    path.write_text("".join(lines), encoding="utf-8")
    with path.open("rb") as file:
        assert Conversations(file).of(result.key) is None
