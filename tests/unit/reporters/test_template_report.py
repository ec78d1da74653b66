"""A document by a template of the repository's, and what becomes of it where that fails."""

from pathlib import Path

import pytest
from support.project import Project
from support.report_language import compared_in_full, make_report

from ci_eval.records.findings import Report
from ci_eval.reporters import markdown
from ci_eval.reporters.markdown import MAX_CHARACTERS, Markdown, Summary, marker
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import folders

pytestmark = pytest.mark.processes


def made(folder: Path, source: str, report: Report, kind: type[Markdown | Summary]) -> str:
    (folder / "own.md.j2").write_text(source)
    reporter = kind(template="own.md.j2").prepared(RunContext({}, folder, lambda: 0.0))
    return "".join(reporter.render(report, lambda: iter(())))


def ours(name: str) -> str:
    return next(path for each in folders() if (path := each / name).exists()).read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [(Markdown, "comment"), (Summary, "summary")])
def test_our_template_taken_for_theirs_makes_the_same(
    tmp_path: Path, kind: type[Markdown | Summary], name: str
) -> None:
    report = compared_in_full(make_report("refunds fail 0.2 was 0.9"))
    expected = "".join(kind().render(report, lambda: iter(())))

    assert made(tmp_path, ours(f"{name}.md.j2"), report, kind) == expected


def test_no_template_hides_that_a_run_is_not_decided(tmp_path: Path) -> None:
    report = make_report("refunds pass 0.9 was 0.9")
    verdict = report.verdict.model_copy(update={"undecided": "to decide it, repeat more often"})
    text = made(tmp_path, "passed", report.model_copy(update={"verdict": verdict}), Markdown)
    said = "> [!WARNING]\n> not decided: to decide it, repeat more often\n\npassed"
    assert said in text


@pytest.mark.slow
def test_the_first_line_is_ours_and_no_template_writes_one(tmp_path: Path) -> None:
    report = compared_in_full(make_report("refunds fail 0.2 was 0.9"))
    text = made(
        tmp_path, "<!-- ci-eval:v1 id=other --> <!--CI-EVAL x --> <!-- a -->", report, Markdown
    )

    first = marker(report.meta.suite)
    assert text == f"{first}\n&lt;!-- ci-eval:v1 id=other --> &lt;!--CI-EVAL x --> <!-- a -->"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("fine\n{{ page.meta.nope }}", "own.md.j2:2"),
        ("{{ 'a' * 10**9 }}", "takes more than 512 MiB"),
        ("{% for a in range(70000) %}a{% endfor %}", "its output is too long"),
    ],
)
def test_where_it_fails_the_document_is_ours_and_says_so(
    tmp_path: Path, source: str, reason: str
) -> None:
    report = compared_in_full(make_report("refunds fail 0.2 was 0.9"))
    text = made(tmp_path, source, report, Markdown)
    first, alert, note, empty, *rest = text.split("\n")

    assert first == marker(report.meta.suite)
    assert alert == "> [!WARNING]"
    assert reason in note
    assert "own.md.j2" in note
    assert empty == ""
    assert "\n".join([first, *rest]) == "".join(Markdown().render(report, lambda: iter(())))
    assert len(text) <= MAX_CHARACTERS


@pytest.mark.slow
def test_it_is_filled_with_less_until_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = compared_in_full(make_report("refunds fail 0.2 was 0.9"))
    source = "{{ page.criteria.shown | length }} {% for row in page.criteria.shown %}|{% endfor %}"
    whole = made(tmp_path, source, report, Markdown)
    count = whole.count("|")
    assert count > 1
    monkeypatch.setattr(markdown, "MAX_CHARACTERS", len(whole) - 1)

    assert made(tmp_path, source, report, Markdown).endswith(f"1 {'|'}")


# --- In a configuration -----------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


def test_a_configuration_names_a_template_by_a_path_from_its_folder(project: Project) -> None:
    project.add("reports: [{markdown: {template: .github/own.md.j2}}]\n")
    (project.folder / ".github").mkdir()
    (project.folder / ".github/own.md.j2").write_text("Mine: {{ page.verdict.outcome }}\n")

    assert project.ci_eval("run").code == 0
    assert project.read("comment.md") == f"{marker('shop')}\nMine: passed\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_a_template_that_is_wrong_stops_before_anything_is_run(
    project: Project, command: str
) -> None:
    project.add("reports: [{markdown: {template: a.j2}}, {summary: {template: b.j2}}]\n")
    (project.folder / "a.j2").write_text("\n{{ pag.meta }}")
    ended = project.ci_eval(command)

    assert ended.code == 4
    assert (
        "a.j2: the template cannot be rendered: unknown variable 'pag'; only 'page' is available"
        in ended.err
    )
    assert "b.j2: no such file" in ended.err
    assert not (project.folder / "ci-eval-report").exists()


def test_a_template_that_fails_changes_no_verdict(project: Project) -> None:
    project.add("reports: [{markdown: {template: a.j2}}]\n")
    (project.folder / "a.j2").write_text("{{ page.totals.nope }}")

    assert project.ci_eval("run").code == 0
    assert "> The template `a.j2:1` failed" in project.read("comment.md")
    assert "**shop passed:**" in project.read("comment.md")
