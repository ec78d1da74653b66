"""`run.json`: written as results come, read as they are asked for, and never half."""

import json
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from support.run_language import meta, results

from ci_eval.records.cases import Status
from ci_eval.records.compared_trials import ComparedScore, ComparedTrial
from ci_eval.records.errors import UsageError
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.model_versions import ServedModel
from ci_eval.records.results import InvocationScore, JudgeUsage, Score, TrialResult
from ci_eval.records.trials import Failure, TrialKey
from ci_eval.run.collect import Tally
from ci_eval.run_files.run_file import _RunReader, read_run, replacing, result_line, writing_run
from ci_eval.text.json_text import RESULT_DEPTH

TEXT = """
greets   1 0.5
refunds  error
weather  skip
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report" / "run.json"


def written(path: Path, *found: TrialResult) -> Path:
    with writing_run(path, meta()) as write:
        for each in found or results(TEXT):
            write(each)
    return path


def changed(path: Path, change: Callable[[Any], object]) -> Path:
    """Change what is in the file as somebody might by hand, one member a line."""
    value = json.loads(written(path).read_text())
    change(value)
    members = (f"{json.dumps(name)}: {json.dumps(member)}" for name, member in value.items())
    path.write_text("{" + ",\n".join(members) + "}")
    return path


def read(path: Path) -> list[TrialResult]:
    return list(read_run(path, shown="run.json").results())


def refusal(path: Path) -> list[str]:
    with pytest.raises(UsageError) as caught:
        read(path)
    return str(caught.value).splitlines()


def tallied(path: Path, *, quickly: bool) -> tuple[object, str]:
    """Return the tally of a run, read as for a comparison or as for a report, or the error."""
    tally = Tally()
    try:
        run = read_run(path, shown="run.json")
        for each in run.compared_trials() if quickly else run.results():
            tally.add(each)
    except UsageError as exc:
        return None, str(exc)
    columns = tally.columns
    cells = {
        key: [(case, astuple(cell)) for case, cell in column.items()]
        for key, column in columns.groups.items()
    }
    contents = {name: [*cases.contents] for name, cases in columns.evalsets.items()}
    seconds = {key: column.seconds.tolist() for key, column in columns.groups.items()}
    shared = columns.models, columns.metered, columns.metered_trials
    others = {**vars(tally), "columns": None}
    return (cells, contents, seconds, shared, others), ""


def told(path: Path) -> tuple[list[TrialResult], str]:
    """Return the results before an error, and the error."""
    found = []
    try:
        for each in read_run(path, shown="run.json").results():
            found.append(each)  # noqa: PERF402  # what was read before an error counts
    except UsageError as exc:
        return found, str(exc)
    return found, ""


CHANGES = [
    ("", ""),
    ('"value":0.5', '"value":1e999'),
    ('"value":0.5', '"value":NaN'),
    ('"value":0.5', '"value":0.5,"evidence":{"a":1e999}'),
    ('"value":0.5', '"value":0.5,"evidence":{"a":[NaN]}'),
    ('"value":0.5', '"value":0.5,"\\u0065vidence":{"a":1e999}'),
    ('"value":0.5', '"value":0.5,"evidence":{"a":"\\ud800"}'),
    ('"value":0.5', '"value":0.5,"evidence":{"a":"x"}'),
    ('"value":0.5', '"value":"much"'),
    ('"value":0.5', '"value":0.5,"unknown":[1]'),
    ('"weather"', '"wea\\nther"'),
    ('"weather"', '"wea\\ud83d\\ude00ther"'),
    ('"weather"', '"wea\tther"'),
    ('"name":', '"name":"other","name":'),
    ("},\n", "}\n"),
    ("},\n", "},\n,\n"),
    ("},\n", "},\n\n"),
    ("},\n", "},\r\n"),
    ("},\n", "},"),
    ("},\n", "},{}\n"),
    ("}\n]}\n", "},\n]}\n"),
    ("}\n]}\n", "}\n]}\n]"),
    ("}\n]}\n", "}\n],"),
    ("}\n]}\n", "}\n"),
    ("}\n]}\n", '}\n],"results":[]}\n'),
    ('"results":[', '"more":1,"results":['),
    ('{"schema_version"', '[{"schema_version"'),
    ('"repeat":0', '"repeat":-5'),
    ('"repeat":0', '"repeat":0,"more":1'),
    ('"criterion":', '"other":'),
    ('"attempts":1', '"attempts":1,"line":-5'),
    ('"attempts":1', '"attempts":1,"output":7'),
    ('"attempts":1', '"attempts":1,"tags":3'),
    ('"attempts":1', '"attempts":1,"messages":[1]'),
    ('"value":0.5', '"value":0.5,"threshold":"x"'),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_reading_line_by_line_finds_what_the_parser_finds(
    path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    text = written(path).read_text(encoding="utf-8")
    assert old in text
    head, found, tail = text.rpartition(old) if old else (text, "", "")
    path.write_bytes((head + (new if found else "") + tail).encode())
    quick = told(path)
    monkeypatch.setattr(_RunReader, "_lines", lambda _: iter(()))
    assert quick == told(path)


@pytest.mark.parametrize(("old", "new"), [each for each in CHANGES if "vidence" not in each[1]])
def test_a_comparison_reads_what_a_report_reads(path: Path, old: str, new: str) -> None:
    text = written(path).read_text(encoding="utf-8")
    head, found, tail = text.rpartition(old) if old else (text, "", "")
    path.write_bytes((head + (new if found else "") + tail).encode())

    assert tallied(path, quickly=True) == tallied(path, quickly=False)


def test_a_comparison_reads_all_that_it_shows(path: Path) -> None:
    (one, *_), served = results("greets@x 1 0"), ServedModel(role="agent", version="m-1")
    usage = JudgeUsage(calls=2, cost_usd=0.5, models=(served,), lacking=("KEY",))
    found = (
        one.model_copy(
            update={
                "scores": tuple(each.model_copy(update={"judging": usage}) for each in one.scores),
                "duration_s": 2.5,
                "attempts": 2,
                "cut_off": ("MAX_TOKENS",),
                "simulation": usage,
                "metered": ModelUsage(calls=3, errors=1, faults=1),
                "models": (served.model_copy(update={"version": "m-2"}),),
            }
        ),
        one.model_copy(update={"error": Failure(kind="timeout", message="too slow")}),
        *results("greets@x 1 | 0 ! 0 error\nrefunds@y skip"),
    )
    written(path, *found)

    assert all(
        isinstance(each, ComparedTrial) for each in read_run(path, shown="").compared_trials()
    )
    assert tallied(path, quickly=True) == tallied(path, quickly=False)
    assert tallied(path, quickly=True)[0]


def test_a_comparison_skips_evidence_and_invocations_and_no_other_field() -> None:
    for compared, whole in ((ComparedTrial, TrialResult), (ComparedScore, Score)):
        fields = {*whole.model_fields} - {"evidence", "invocations"}
        assert {*compared.__struct_fields__} == fields


def test_what_a_comparison_does_not_read_may_be_wrong(path: Path) -> None:
    text = written(path).read_text(encoding="utf-8")
    path.write_text(text.replace('"value":0.5', '"value":0.5,"evidence":{"a":1e999}'))

    assert tallied(path, quickly=True)[0]
    assert "too large" in tallied(path, quickly=False)[1]


# --- Writing and reading --------------------------------------------------------------------


def test_what_is_written_is_read(path: Path) -> None:
    found = read_run(written(path), shown="run.json")
    assert found.meta == meta()
    assert list(found.results()) == list(results(TEXT))
    assert list(found.results()) == list(results(TEXT))  # and again


def test_a_run_without_results_is_one(path: Path) -> None:
    with writing_run(path, meta()):
        pass
    assert list(read_run(path, shown="run.json").results()) == []


def test_the_file_is_json_with_a_result_on_each_line(path: Path) -> None:
    text = written(path).read_text()
    assert text.endswith("\n]}\n")
    head, *rows = text.splitlines()[:-1]
    assert head.startswith('{"schema_version":1,"meta":{"run_id":"now",')
    assert head.endswith('"results":[')
    assert len(rows) == 4
    assert json.loads(text)["results"][0] == json.loads(rows[0].removesuffix(","))


def test_tools_find_every_field() -> None:
    score = Score(
        criterion="ci/c",
        name="c",
        status=Status.FAILED,
        value=0.0,
        invocations=(
            InvocationScore(status=Status.FAILED, value=0.0, evidence={"actual": "x"}),
            InvocationScore(status=Status.PASSED, value=1.0),
        ),
    )
    key = TrialKey(agent="a", evalset="e", case="c")
    row = json.loads(result_line(TrialResult(key=key, status=Status.FAILED, scores=(score,))))
    assert row["error"] is None
    assert set(row["scores"][0]) == set(Score.model_fields)
    first, second = row["scores"][0]["invocations"]
    assert first["evidence"] == {"actual": "x"}
    assert second["evidence"] is None


def test_a_run_that_does_not_end_leaves_no_file(path: Path) -> None:
    written(path)

    def interrupted() -> None:
        with writing_run(path, meta()) as write:
            write(next(results(TEXT)))
            assert not path.exists()  # an older run is no result of this one
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [each.name for each in path.parent.iterdir()] == [".gitignore"]
    assert (path.parent / ".gitignore").read_text().endswith("\n*\n")


def test_a_newer_version_may_say_more(path: Path) -> None:
    def more(run: Any) -> None:
        run["news"] = [1]
        run["meta"]["news"] = 1
        run["results"][0]["news"] = {}

    found = read_run(changed(path, more), shown="run.json")
    assert list(found.results()) == list(results(TEXT))


def test_evidence_may_nest_as_deep_as_results_do(path: Path) -> None:
    evidence: dict[str, Any] = {}
    for _ in range(RESULT_DEPTH - 7):
        evidence = {"x": evidence}
    part = InvocationScore(status=Status.FAILED, value=0.0, evidence=evidence)
    (first, *_) = results(TEXT)
    deep = first.model_copy(
        update={"scores": (first.scores[0].model_copy(update={"invocations": (part,)}),)}
    )
    assert list(read_run(written(path, deep), shown="run.json").results()) == [deep]


# --- Refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "run.json:1: is empty"),
        ("{}", "run.json:1: is not a run of ci-eval"),
        ("[]", "run.json:1: is not a run of ci-eval"),
        ('{"eval_set_id": "s", "eval_cases": []}', "run.json:1: is not a run of ci-eval"),
        ('{"schema_version": 1, "results": []}', "run.json:1: is not a run of ci-eval"),
        ('{"meta', "run.json:1: is not JSON: unterminated string"),
        (
            '{\n"schema_version": 2, "meta": 5}',
            "run.json:2: has schema version 2; this version of ci-eval reads 1",
        ),
        (
            '{"schema_version": "1"}',
            "run.json:1: has schema version '1'; this version of ci-eval reads 1",
        ),
        ('{"schema_version": 1,\n"meta": 5}', "run.json:2: expected an object, found 5"),
    ],
)
def test_what_is_no_run_is_refused(path: Path, text: str, said: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert refusal(path) == [said]


def test_a_missing_file_is_told_so(path: Path) -> None:
    assert refusal(path) == ["run.json: no such file"]


def test_a_run_of_no_version_is_none(path: Path) -> None:
    changed(path, lambda run: run.pop("schema_version"))
    assert refusal(path) == ["run.json:1: is not a run of ci-eval"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: run["meta"].pop("run_id"), "2: 'run_id' is missing"),
        (
            lambda run: run["meta"].update(repeats="x"),
            "2: repeats: expected a whole number, found ",
        ),
        (lambda run: run.update(results=5), "3: expected an object, found 5"),
        (lambda run: run.update(results=None), "3: expected an object, found nothing"),
        (lambda run: run["results"].append(5), "3: expected an object, found 5"),
        (lambda run: run["results"][1]["key"].pop("case"), "3: key: 'case' is missing"),
        (
            lambda run: run["results"][0].update(status="great"),
            "3: status: input should be 'passed', 'failed', 'error' or 'skipped'",
        ),
        (
            lambda run: run["results"][0]["scores"][0].update(value=None),
            "3: scores[0]: a score has a value exactly when it passed or failed",
        ),
        (
            lambda run: run["results"][0]["scores"][0].update(value=1.5),
            "3: scores[0]: the value must lie between 0 and 1, found 1.5",
        ),
        (
            lambda run: run["results"][0]["scores"][0].update(name="d"),
            "3: scores[0]: the run has no criterion 'd'",
        ),
    ],
)
def test_a_run_that_was_changed_by_hand_is_refused_with_the_line(
    path: Path, change: Callable[[Any], object], said: str
) -> None:
    changed(path, change)
    (found,) = refusal(path)
    assert found.startswith(f"run.json:{said}")


def test_every_mistake_of_a_result_is_named(path: Path) -> None:
    def change(run: Any) -> None:
        run["results"][0] |= {"attempts": "x", "duration_s": []}

    assert refusal(changed(path, change)) == [
        "run.json:3: duration_s: expected a number, found a list",
        "run.json:3: attempts: expected a whole number, found 'x'",
    ]


def test_a_run_that_was_cut_off_is_read_to_where_it_ends(path: Path) -> None:
    text = written(path).read_text()
    path.write_text(text[: text.index('"refunds"')])
    found = read_run(path, shown="run.json").results()
    assert [next(found), next(found)] == list(results(TEXT))[:2]
    with pytest.raises(UsageError, match=r"^run.json:4: "):
        next(found)


# --- Replacing a file -----------------------------------------------------------------------


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with replacing(path) as file:
        file.write("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_stays_as_it_was_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def fails() -> None:
        with replacing(path) as file:
            file.write("new")
            raise OSError("no space left")

    with pytest.raises(OSError, match=r"^no space left$"):
        fails()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_the_way_of_the_draft_is_not_written_through(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("untouched")
    (tmp_path / ".a.draft").symlink_to(other)
    with replacing(tmp_path / "a") as file:
        file.write("new")
    assert other.read_text() == "untouched"
