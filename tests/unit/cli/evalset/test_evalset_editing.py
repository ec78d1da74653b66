"""An evalset is found, made and edited; what is wrong is said in ADK's words."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.project import GREETS, REFUNDS, TRACKS, Project

from ci_eval.cli.evalset.evalset_argument import evalset_files, located
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import EvalSetError, UsageError
from ci_eval.runtime.storage.adk_storage import check_id, id_from


@pytest.fixture
def project(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


def made(data):
    return EvalCase.model_validate(data)


def test_an_evalset_is_named_by_a_file_or_by_a_folder_and_an_id(project):
    (project.folder / "agents/shop").mkdir(parents=True)
    by_id = located("agents/shop", "smoke")
    by_file = located("evals/my smoke.evalset.json", None)

    assert (by_id.shown, by_id.app) == ("agents/shop/smoke.evalset.json", "shop")
    assert (by_file.shown, by_file.eval_set_id) == ("evals/my smoke.evalset.json", "my_smoke")


@pytest.mark.parametrize(
    ("eval_set_id", "message"),
    [
        ("../x", "eval_set_id '../x' must not contain path separators."),
        ("a/b", "eval_set_id 'a/b' must not contain path separators."),
        ("a\\b", r"eval_set_id 'a\\b' must not contain path separators."),
        ("", "eval_set_id must not be empty."),
        (".", "eval_set_id '.' must not contain traversal segments."),
        ("..", "eval_set_id '..' must not contain traversal segments."),
        ("C:x", "eval_set_id 'C:x' must not be drive-qualified."),
        ("a\0b", "eval_set_id must not contain null bytes."),
    ],
)
def test_an_id_never_leads_out_of_the_folder(project, eval_set_id, message):
    """In the words of ADK 2.13.0."""
    with pytest.raises(UsageError) as caught:
        located(".", eval_set_id)
    assert str(caught.value) == message


def test_a_folder_needs_an_id_and_a_file_takes_none(project):
    with pytest.raises(UsageError, match="is a directory; add the id of an evalset"):
        located(".", None)
    with pytest.raises(UsageError, match="is a file; an id needs the directory"):
        located("smoke.evalset.json", "x")
    with pytest.raises(UsageError, match="is missing"):
        located("nowhere", "x")


@pytest.mark.parametrize("eval_set_id", ["a-b", "a.b", "", "ä", "a b", "a\n"])
def test_only_ids_that_adk_takes_are_created(eval_set_id):
    with pytest.raises(UsageError, match=r"Invalid Eval Set ID. Eval Set ID should have the"):
        check_id(eval_set_id)


def test_a_made_evalset_is_empty_and_is_made_once(project):
    target = located(".", "new")
    target.create(12.5)

    assert json.loads((project.folder / "new.evalset.json").read_text()) == {
        "eval_set_id": "new",
        "name": "new",
        "eval_cases": [],
        "creation_timestamp": 12.5,
    }
    with pytest.raises(UsageError, match=r"EvalSet new already exists for app"):
        target.create(13.0)


@pytest.mark.parametrize("name", ["new.evalset.json", "new.yaml", "new.json"])
def test_a_made_file_takes_cases(project, name):
    target = located(name, None)
    target.create(1.0)
    target.add([made(GREETS), made(REFUNDS)])
    target.update([made({**GREETS, "tags": ["x"]})])
    target.delete(["refunds"])

    (case,) = target.open().cases()
    assert (case.eval_id, case.tags) == ("greets", ("x",))
    target.delete(["greets"])
    assert list(target.open().cases()) == []


def test_edits_at_the_same_time_are_made_one_after_the_other(project):
    def add(name):
        located("smoke.evalset.json", None).add([made({**GREETS, "eval_id": name})])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, "abcdefgh"))

    added = {case.eval_id for case in located("smoke.evalset.json", None).open().cases()}
    assert added == {"greets", "refunds", "tracks", *"abcdefgh"}


def test_an_id_that_is_there_is_refused_with_all_of_them(project):
    target = located("smoke.evalset.json", None)
    before = project.folder.joinpath("smoke.evalset.json").read_bytes()

    with pytest.raises(EvalSetError) as found:
        target.add([made(REFUNDS), made({**GREETS, "eval_id": "new"}), made(TRACKS)])

    assert [problem.message for problem in found.value.problems] == [
        "Eval id `refunds` already exists in `smoke` eval set.",
        "Eval id `tracks` already exists in `smoke` eval set.",
    ]
    assert project.folder.joinpath("smoke.evalset.json").read_bytes() == before


def test_two_new_cases_of_one_id_are_refused(project):
    with pytest.raises(EvalSetError, match="Eval id `n` already exists"):
        located("smoke.evalset.json", None).add([made({**GREETS, "eval_id": "n"})] * 2)


def test_what_is_not_there_is_neither_replaced_nor_deleted(project):
    target = located("smoke.evalset.json", None)
    before = project.folder.joinpath("smoke.evalset.json").read_bytes()

    with pytest.raises(EvalSetError, match=r"Eval case `no` not found in eval set `smoke`\."):
        target.update([made({**GREETS, "eval_id": "no"})])
    with pytest.raises(EvalSetError, match=r"Eval case `no` not found in eval set `smoke`\."):
        target.delete(["greets", "no"])
    with pytest.raises(EvalSetError, match=r"Eval set `gone` not found\."):
        located("gone.json", None).delete(["a"])
    assert project.folder.joinpath("smoke.evalset.json").read_bytes() == before


def test_a_file_with_errors_is_never_rewritten(project):
    path = project.folder / "smoke.evalset.json"
    path.write_text(path.read_text().replace('"user_content"', '"usr_content"'))
    before = path.read_bytes()

    with pytest.raises(EvalSetError, match="'user_content' is missing"):
        located(path.name, None).delete(["greets"])
    assert path.read_bytes() == before


def test_keys_that_nobody_knows_stay_where_they_are(project):
    path = project.folder / "smoke.evalset.json"
    data = {"eval_set_id": "s", "mine": {"x": 1.0}, "eval_cases": [{**GREETS, "note": None}]}
    path.write_text(json.dumps(data))

    located(path.name, None).add([made(REFUNDS)])

    assert json.loads(path.read_text()) == {**data, "eval_cases": [*data["eval_cases"], REFUNDS]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cases:\n- id: a\n  prompt: &x Hi\n- id: b\n  prompt: *x\n", "undefined alias"),
        ("cases:\n- id: a\n  prompt: |\n   Hi\n  tags: [x]\n# '\n- {id: b}\n", "needs a 'prompt'"),
    ],
)
def test_an_edit_that_would_break_the_file_is_not_made(project, text, said):
    path = project.folder / "own.yaml"
    path.write_text(text)

    with pytest.raises(EvalSetError) as found:
        located("own.yaml", None).delete(["a"])
    assert said in str(found.value)
    assert path.read_text() == text


def test_a_case_that_the_format_cannot_hold_is_not_added(project):
    path = project.folder / "own.yaml"
    path.write_text("cases:\n- prompt: Hi\n")
    image = {"parts": [{"inline_data": {"mime_type": "image/png", "data": ""}}]}
    case = {"eval_id": "a", "conversation": [{"user_content": image}]}

    with pytest.raises(EvalSetError, match=r"prompt: must not be empty") as found:
        located("own.yaml", None).add([made(case)])
    assert "nothing was written" in found.value.hint
    assert path.read_text() == "cases:\n- prompt: Hi\n"


def test_what_the_format_does_not_keep_of_a_new_case_is_said(project):
    path = project.folder / "own.yaml"
    path.write_text("cases:\n- prompt: Hi\n")
    lost = located("own.yaml", None).add([made({**GREETS, "note": 1, "creation_timestamp": 5})])

    assert [problem.message for problem in lost] == [
        "the format 'cases' does not keep 'note' of 'greets'"
    ]


def test_a_link_is_not_written_through(project):
    project.folder.joinpath("link.evalset.json").symlink_to("smoke.evalset.json")
    before = project.folder.joinpath("smoke.evalset.json").read_bytes()

    with pytest.raises(UsageError, match="is a symbolic link, not written"):
        located("link.evalset.json", None).delete(["greets"])
    assert project.folder.joinpath("smoke.evalset.json").read_bytes() == before


def test_who_may_read_a_file_stays_as_it_is(project):
    path = project.folder / "smoke.evalset.json"
    path.chmod(0o640)
    located(path.name, None).delete(["greets"])

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_stays_as_it_is(project, mark):
    path = project.folder / "own.yaml"
    path.write_text(f"{mark}cases:\n- id: a\n  prompt: Hi\n- id: b\n  prompt: Ho\n")
    located("own.yaml", None).delete(["a"])

    assert path.read_text() == f"{mark}cases:\n- id: b\n  prompt: Ho\n"


AGENTFLOW = {
    "eval_cases": [
        {"eval_id": "a", "conversation": [{"user_content": {"role": "user", "content": "Hi"}}]}
    ]
}


@pytest.mark.parametrize(
    ("name", "text", "way_out"),
    [
        ("a.test.json", '[{"query": "Hi", "reference": "Ho"}]', "ci-eval evalset migrate"),
        ("a.json", json.dumps(AGENTFLOW), "ci-eval evalset convert a.json --to adk"),
    ],
)
def test_a_format_that_is_not_edited_says_what_to_do(project, name, text, way_out):
    (project.folder / name).write_text(text)

    with pytest.raises(UsageError, match="whose cases cannot be edited") as found:
        located(name, None).delete(["a"])
    assert way_out in found.value.hint


def test_a_folder_is_looked_through_for_what_is_or_should_be_an_evalset(project):
    for name in (
        "deep/b.test.json",
        "deep/c.yaml",
        ".hidden/d.evalset.json",
        "node_modules/e.json",
    ):
        path = project.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("cases: [{prompt: Hi}]" if name.endswith("yaml") else "{")
    (project.folder / "other.json").write_text("[]")

    assert [file.shown for file in evalset_files(".")] == [
        "deep/b.test.json",
        "deep/c.yaml",
        "smoke.evalset.json",
    ]
    with pytest.raises(UsageError, match="Eval directory for app `no` not found"):
        list(evalset_files("no"))


@pytest.mark.parametrize(
    ("name", "eval_set_id"),
    [("a.evalset.json", "a"), ("a-b.test.json", "a_b"), ("x.yaml", "x"), ("…json", "json")],
)
def test_the_name_of_a_file_makes_an_id(name, eval_set_id):
    assert id_from(name) == eval_set_id
    check_id(eval_set_id)
