"""What a configuration asks for, and what is left of it when only a part is wanted."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.git_repositories import git_init

from ci_eval.config.load_config import load
from ci_eval.config.open_evalset import open_evalset
from ci_eval.config.selection import Selection
from ci_eval.plugins import points
from ci_eval.records.errors import EvalSetError, NothingSelectedError, UsageError
from ci_eval.records.trials import Place
from ci_eval.run.plan import Plan, plan
from ci_eval.runtime.context import RunContext

CONFIG = """\
agents:
  old: {recorded: traces.jsonl}
  new: {recorded: traces.jsonl}
evalsets:
  smoke: smoke.json
  full: full.json
criteria:
  tool_trajectory_avg_score: 1
  tool_call_count_v1:
"""


def case(name: str, **more: object) -> dict[str, Any]:
    text = {"parts": [{"text": "x"}]}
    return {
        "eval_id": name,
        "conversation": [{"user_content": text, "final_response": text, "intermediate_data": {}}],
        **more,
    }


def scenario(name: str) -> dict[str, Any]:
    plot = {"starting_prompt": "Hello", "conversation_plan": "Be kind."}
    return {"eval_id": name, "conversation_scenario": plot}


class Suite:
    """A folder with a configuration and evalsets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "traces.jsonl").touch()
        self.config(CONFIG)
        self.evalset("smoke.json", case("a"), case("b"))
        self.evalset("full.json", case("a"), case("c_1"), case("c_2"))

    def config(self, text: str) -> None:
        self.text = text
        (self.folder / "ci-eval.yaml").write_text(text)

    def evalset(self, name: str, *cases: dict[str, Any]) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}))

    def evalsets(self, text: str) -> None:
        """Have these evalsets instead of the two."""
        self.config(CONFIG.replace("  smoke: smoke.json\n  full: full.json\n", text))

    def plan(self, *, repeats: int | None = None, **selected: Any) -> Plan:
        path = self.folder / "ci-eval.yaml"
        context = RunContext(env={}, root=self.folder, now=lambda: 0.0)
        config = load(path, shown="ci-eval.yaml", context=context)
        return plan(config, context, selection=Selection(**selected), repeats=repeats)

    def refusal(self, **selected: Any) -> list[str]:
        with pytest.raises(UsageError) as caught:
            self.plan(**selected)
        return [str(problem) for problem in caught.value.problems]

    def nothing(self, **selected: Any) -> str:
        with pytest.raises(NothingSelectedError) as caught:
            self.plan(**selected)
        return str(caught.value)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def tried(planned: Plan) -> list[str]:
    return [
        f"{key.agent} {key.evalset} {key.case} {key.repeat}"
        for key in (trial.key for trial in planned.trials())
    ]


def cases(planned: Plan) -> dict[str, list[str]]:
    return {
        name: [each.eval_id for each in chosen.cases()] for name, chosen in planned.evalsets.items()
    }


# --- All of it ------------------------------------------------------------------------------


def test_every_agent_tries_every_case(suite: Suite) -> None:
    planned = suite.plan()
    assert tried(planned) == [
        f"{agent} {evalset} 0"
        for agent in ("old", "new")
        for evalset in ("smoke a", "smoke b", "full a", "full c_1", "full c_2")
    ]
    assert planned.count == 10
    assert planned.filtered is False
    assert planned.warnings == ()
    assert set(planned.pairs["old", "smoke"]) == {"tool_trajectory_avg_score", "tool_call_count_v1"}


def test_repeats_of_a_case_follow_one_another(suite: Suite) -> None:
    planned = suite.plan(repeats=2, agents=("old",), evalsets=("smoke",))
    assert tried(planned) == ["old smoke a 0", "old smoke a 1", "old smoke b 0", "old smoke b 1"]
    assert planned.count == 4


def test_repeats_come_from_the_configuration_unless_given(suite: Suite) -> None:
    suite.config(CONFIG + "run: {repeats: 3}\n")
    assert suite.plan().count == 30
    assert suite.plan(repeats=1).count == 10


def test_a_matrix_narrows_who_meets_whom(suite: Suite) -> None:
    suite.config(
        CONFIG
        + """\
matrix:
  - {agents: [old], evalsets: [smoke], criteria: [tool_call_count_v1]}
  - {agents: [new], evalsets: [full]}
gate: {allow_unjudged: [{agent: old, evalset: smoke}]}
"""
    )
    planned = suite.plan()
    assert {pair: sorted(criteria) for pair, criteria in planned.pairs.items()} == {
        ("old", "smoke"): ["tool_call_count_v1"],
        ("new", "full"): ["tool_call_count_v1", "tool_trajectory_avg_score"],
    }
    assert planned.count == 5


# --- A part of it ---------------------------------------------------------------------------


def test_a_selection_keeps_what_it_names(suite: Suite) -> None:
    planned = suite.plan(agents=("new",), cases=("a", "c_*"), criteria=("tool_call_count_v1",))
    assert tried(planned) == ["new smoke a 0", "new full a 0", "new full c_1 0", "new full c_2 0"]
    assert {tuple(each) for each in planned.pairs.values()} == {("tool_call_count_v1",)}
    assert planned.filtered is True


def test_assertions_that_are_checked_for_another_agent_are_no_fault(suite: Suite) -> None:
    suite.evalsets('  smoke: smoke.json\n  all: "f*.json"\n')
    suite.evalset("full.json", case("a", assertions=[{"contains": "x"}]))
    config = f"{suite.text}  ci/assertions: 1\ngate: {{allow_unjudged: [{{evalset: smoke}}]}}\n"
    row = "{agents: [old], evalsets: [smoke], criteria: [tool_call_count_v1]}"
    suite.config(f"{config}matrix: [{row}, {{agents: [new], evalsets: [all]}}]\n")
    assert list(suite.plan(agents=("old",)).pairs) == [("old", "smoke")]

    suite.config(f"{config}matrix: [{row}, {{agents: [new], evalsets: [smoke]}}]\n")
    (said,) = suite.refusal(agents=("old",))
    assert "nothing checks these assertions; add `ci/assertions: 1` to the criteria" in said


def test_assertions_that_are_checked_in_an_evalset_with_a_similar_name_are_a_fault(
    suite: Suite,
) -> None:
    suite.evalsets('  smoke: smoke.json\n  "smoke:x": full.json\n')
    suite.evalset("full.json", case("a", assertions=[{"contains": "x"}]))
    row = '{evalsets: ["smoke:x"], criteria: [tool_call_count_v1]}'
    more = "gate: {allow_unjudged: [{evalset: smoke}]}\n"
    suite.config(f"{suite.text}  ci/assertions: 1\n{more}matrix: [{row}, {{evalsets: [smoke]}}]\n")
    assert "nothing checks these assertions" in "".join(suite.refusal(evalsets=("smoke:x",)))


def test_an_evalset_without_a_selected_case_is_left_out(suite: Suite) -> None:
    assert cases(suite.plan(cases=("b",))) == {"smoke": ["b"]}


@pytest.mark.parametrize(
    ("selected", "said"),
    [
        ({"agents": ("newer",)}, "unknown agent 'newer'. Did you mean 'new'?"),
        ({"evalsets": ("smok",)}, "unknown evalset 'smok'. Did you mean 'smoke'?"),
        ({"criteria": ("x",)}, "unknown criterion 'x'; known: tool_call_count_v1, tool_traj"),
        ({"cases": ("zebra",)}, "no evalset has a case 'zebra'"),
        ({"cases": ("a", "zebra*")}, "no evalset has a case 'zebra*'"),
    ],
)
def test_a_selection_of_something_unknown_is_refused(
    suite: Suite, selected: dict[str, tuple[str, ...]], said: str
) -> None:
    (found,) = suite.refusal(**selected)
    assert found.startswith(f"ci-eval.yaml: {said}")


def test_parts_that_do_not_meet_leave_nothing(suite: Suite) -> None:
    suite.config(CONFIG + "matrix: [{agents: [old]}]\n")
    assert suite.nothing(agents=("new",)) == (
        "nothing to run: no agent, evalset and criterion match each other"
    )


def test_a_case_that_the_configuration_leaves_out_cannot_be_selected(suite: Suite) -> None:
    suite.evalsets("  smoke: {path: smoke.json, cases: [a]}\n")
    assert suite.nothing(cases=("b",)) == "nothing to run: no case is selected"


def test_empty_evalsets_leave_nothing(suite: Suite) -> None:
    suite.evalset("smoke.json")
    suite.evalset("full.json")
    assert (
        suite.nothing() == "nothing to run: the evalsets contain no cases (smoke.json, full.json)"
    )


@pytest.mark.parametrize("tags", ["", ", tags: [rare]"])
def test_an_evalset_without_a_case_beside_a_full_one_is_refused(suite: Suite, tags: str) -> None:
    suite.evalset("smoke.json", *([case("b")] if tags else []))
    suite.evalset("full.json", case("a"))
    suite.evalsets(f"  smoke: {{path: smoke.json{tags}}}\n  full: full.json\n")
    (said,) = suite.refusal()
    assert said.startswith("smoke.json:1: no case of evalset 'smoke' is selected; ")
    # A part of the suite may have no case of it.
    assert cases(suite.plan(cases=("a",))) == {"full": ["a"]}
    suite.config(f"{suite.text}gate: {{allow_unjudged: [{{evalset: smoke}}]}}\n")
    planned = suite.plan()
    assert cases(planned) == {"full": ["a"]}
    (told,) = map(str, planned.warnings)
    assert told == "smoke.json:1: no case selected (allowed by gate.allow_unjudged)"


def test_a_case_without_a_turn_is_refused(suite: Suite) -> None:
    suite.evalset("smoke.json", case("b"), {"eval_id": "a", "conversation": []})
    assert any("case 'a': no blocking criterion" in each for each in suite.refusal())


def test_what_may_be_unjudged_and_is_not_there_is_warned_of(suite: Suite) -> None:
    suite.config(f"{CONFIG}gate: {{allow_unjudged: [a, nobody, {{case: a, agent: other}}]}}\n")
    assert [str(each) for each in suite.plan().warnings if "covers" in each.message] == [
        "ci-eval.yaml:10: gate.allow_unjudged[1]: covers no case",
        "ci-eval.yaml:10: gate.allow_unjudged[2]: covers no case",
    ]


def test_a_tag_keeps_the_cases_that_have_it(suite: Suite) -> None:
    suite.evalset("smoke.json", case("a", tags=["slow"]), case("b", tags=["slow", "new"]))
    suite.evalset("full.json", case("c"))
    assert cases(suite.plan(tags=("slow",))) == {"smoke": ["a", "b"]}
    planned = suite.plan(tags=("slow", "new"), agents=("old",))
    assert (tried(planned), planned.count, planned.filtered) == (["old smoke b 0"], 1, True)
    assert (
        suite.nothing(tags=("quick",))
        == "nothing to run: no case has the tag 'quick'; known: new, slow"
    )


def test_tags_may_belong_to_an_evalset_and_are_no_selection(suite: Suite) -> None:
    suite.evalset("full.json", case("a", tags=["x"]), case("b"), case("c", tags=["x", "y"]))
    suite.evalsets("  one: {path: full.json, tags: [x]}\n")
    planned = suite.plan()
    assert (cases(planned), planned.filtered) == ({"one": ["a", "c"]}, False)
    assert cases(suite.plan(tags=("y",))) == {"one": ["c"]}
    suite.evalsets("  one: {path: full.json, tags: [x, z]}\n")
    assert suite.nothing() == "nothing to run: no case has the tag 'z'; known: x, y"


def test_places_keep_agents_evalsets_and_cases_that_belong_together(suite: Suite) -> None:
    kept = {Place("old", "smoke", "b"), Place("new", "full", "c_1")}
    places = frozenset(kept | {Place("new", "full", "gone"), Place("no", "smoke", "b")})
    planned = suite.plan(places=places, repeats=2)
    assert tried(planned) == ["old smoke b 0", "old smoke b 1", "new full c_1 0", "new full c_1 1"]
    assert planned.count == 4
    assert set(planned.pairs) == {("old", "smoke"), ("new", "full")}
    assert planned.filtered is True
    narrower = suite.plan(places=places, cases=("c_*",))
    assert tried(narrower) == ["new full c_1 0"]
    for each in (planned, narrower):
        [warning] = map(str, each.warnings)
        assert warning == (
            "ci-eval.yaml: failed before and not rerun, because no longer in the suite: "
            "full/gone with new, smoke/b with no"
        )
    assert suite.plan(places=frozenset(kept), evalsets=("full",)).warnings == ()


@pytest.mark.parametrize("place", [Place("old", "smoke", "gone"), Place("gone", "smoke", "a")])
def test_places_that_are_gone_leave_nothing(suite: Suite, place: Place) -> None:
    assert suite.nothing(places=frozenset({place})) == (
        "nothing to run: the failed cases are no longer in the suite, or not selected: "
        f"smoke/{place.case} with {place.agent}"
    )


# --- Which files and cases ------------------------------------------------------------------


def test_cases_may_be_named_beside_the_path_or_behind_it(suite: Suite) -> None:
    suite.evalsets("  one: {path: full.json, cases: [a]}\n  two: full.json:c_2, c_1\n")
    assert cases(suite.plan()) == {"one": ["a"], "two": ["c_1", "c_2"]}


def test_a_case_that_is_named_must_be_there(suite: Suite) -> None:
    suite.evalsets("  one: {path: full.json, cases: [a, d]}\n  two: full.json:c_3\n")
    assert suite.refusal() == [
        "ci-eval.yaml:5: evalsets.one: full.json has no case 'd'; known: a, c_1, c_2",
        "ci-eval.yaml:6: evalsets.two: full.json has no case 'c_3'. Did you mean 'c_2'?",
    ]


def test_a_pattern_of_cases_fits_ids_that_hold_its_signs(suite: Suite) -> None:
    suite.evalset("full.json", case("a[1]"), case("a*"), case("ab"))
    suite.evalsets('  one: {path: full.json, cases: ["a[1]"]}\n')
    assert cases(suite.plan()) == {"one": ["a[1]"]}


def test_a_pattern_of_files_gives_each_a_name(suite: Suite) -> None:
    suite.evalset("evals/b.evalset.json", case("b"))
    suite.evalset("evals/deep/a.test.json", case("a"))
    suite.evalsets("  all: evals/**/*.json\n")
    planned = suite.plan(agents=("old",))
    assert cases(planned) == {"all:evals.b": ["b"], "all:evals.deep.a": ["a"]}
    assert [planned.evalsets[name].opened.header.path for name in planned.evalsets] == [
        "evals/b.evalset.json",
        "evals/deep/a.test.json",
    ]


def test_files_of_one_stem_keep_their_endings(suite: Suite) -> None:
    for name in ("x.json", "x.evalset.json", "x.test.json", "y.json", "a/b.json", "a.b.json"):
        suite.evalset(f"evals/{name}", case("a"))
    suite.evalsets("  all: evals/**/*.json\n")
    assert list(cases(suite.plan())) == [
        "all:evals.a.b",
        "all:evals.a.b+",
        "all:evals.x.evalset.json",
        "all:evals.x.json",
        "all:evals.x.test.json",
        "all:evals.y",
    ]


def test_a_pattern_may_be_followed_by_cases(suite: Suite) -> None:
    suite.evalsets('  all: "*l*.json:a"\n')
    assert cases(suite.plan()) == {"all:full": ["a"]}


def test_a_pattern_may_lead_anywhere(suite: Suite, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    suite.folder = inner
    suite.evalsets('  up: "../s*.json"\n')
    (inner / "traces.jsonl").touch()
    assert list(cases(suite.plan())) == ["up:smoke"]
    suite.evalsets(f'  there: "{tmp_path}/s*.json"\n')
    (name,) = cases(suite.plan())
    assert name.endswith(".smoke")


def test_a_folder_is_no_evalset(suite: Suite) -> None:
    (suite.folder / "evals").mkdir()
    suite.evalsets("  all: evals\n  here: .\n")
    message = "is a directory; name a file"
    assert suite.refusal() == [
        f"ci-eval.yaml:5: evalsets.all: 'evals' {message}",
        f"ci-eval.yaml:6: evalsets.here: '.' {message}, or use a pattern such as '*.json'",
    ]


def test_a_name_that_looks_like_a_pattern_may_be_a_file(suite: Suite) -> None:
    suite.evalset("[v1].json", case("a"))
    suite.evalsets('  one: "[v1].json"\n')
    assert cases(suite.plan()) == {"one": ["a"]}


@pytest.mark.parametrize("pattern", ["none*.json", "**.yaml/x", "/nowhere/*.json", "s*/"])
def test_a_pattern_must_fit_something(suite: Suite, pattern: str) -> None:
    suite.evalsets(f'  all: "{pattern}"\n')
    assert suite.refusal() == [f"ci-eval.yaml:5: evalsets.all: {pattern!r} matches no file"]


def test_a_link_that_leads_nowhere_is_no_evalset_fewer(suite: Suite) -> None:
    suite.evalset("one.json", case("a"))
    (suite.folder / "other.json").symlink_to("nowhere.json")
    suite.evalsets('  all: "*o*.json"\n')
    said = "evalsets.all: there is no file 'other.json': the link leads nowhere"
    assert suite.refusal() == [f"ci-eval.yaml:5: {said}"]


def test_a_pattern_that_no_file_can_fit_is_none(suite: Suite) -> None:
    suite.evalsets('  all: "a\\0*"\n')
    assert suite.refusal() == ["ci-eval.yaml:5: evalsets.all: is not a path: it contains U+0000"]


def test_one_of_the_files_of_a_pattern_can_be_selected(suite: Suite) -> None:
    suite.evalsets('  all: "*l*.json"\n  more: smoke.json\n')
    assert list(cases(suite.plan(evalsets=("all:full",)))) == ["all:full"]
    assert list(cases(suite.plan(evalsets=("all",)))) == ["all:full"]
    (said,) = suite.refusal(evalsets=("all:ful",))
    assert said == "ci-eval.yaml: unknown evalset 'all:ful'. Did you mean 'all:full'?"


def test_the_matrix_speaks_of_all_files_of_a_pattern(suite: Suite) -> None:
    suite.evalsets('  all: "*.json"\n')
    suite.config(
        (suite.folder / "ci-eval.yaml").read_text() + "matrix: [{agents: [new], evalsets: [all]}]\n"
    )
    assert list(suite.plan().pairs) == [("new", "all:full"), ("new", "all:smoke")]


def test_a_run_names_files_from_the_top_of_the_repository(tmp_path: Path) -> None:
    git_init(tmp_path)
    inner = tmp_path / "suite"
    inner.mkdir()
    suite = Suite(inner)
    suite.evalset("../smoke.json", case("a"))
    suite.evalsets("  out: ../smoke.json\n  in: full.json\n")
    headers = [each.opened.header.path for each in suite.plan().evalsets.values()]
    assert headers == ["smoke.json", "suite/full.json"]


def test_two_evalsets_cannot_have_one_name(suite: Suite) -> None:
    suite.evalsets('  "all:full": smoke.json\n  all: "f*.json"\n')
    assert suite.refusal() == ["ci-eval.yaml:6: evalsets.all: two evalsets are called 'all:full'"]


def test_names_may_hold_colons(suite: Suite) -> None:
    suite.evalsets('  "v1:smoke": smoke.json\n')
    suite.config((suite.folder / "ci-eval.yaml").read_text() + "matrix: [{agents: [old]}]\n")
    assert list(suite.plan().pairs) == [("old", "v1:smoke")]


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "suite"
    root.mkdir()
    suite = Suite(root)
    (tmp_path / "out.json").write_text("{}")
    (root / "full.json").unlink()
    (root / "full.json").symlink_to(tmp_path / "out.json")
    assert suite.refusal() == ["full.json: is a symlink out of the repository"]


def test_every_problem_of_every_file_is_named(suite: Suite) -> None:
    (suite.folder / "smoke.json").write_text("{")
    (suite.folder / "full.json").write_text('{"eval_set_id": 5,\n"eval_cases": [{}]}')
    assert suite.refusal() == [
        "smoke.json:1: expected a name in double quotes",
        "full.json:1: eval_set_id: expected text, found 5",
        "full.json:2: eval_cases[0]: 'eval_id' is missing",
    ]


def test_a_warning_about_a_file_that_is_used_twice_is_given_once(suite: Suite) -> None:
    suite.evalset("full.json", {**case("a"), "rubric": []})
    suite.evalsets("  one: full.json\n  two: full.json\n")
    assert len(suite.plan().warnings) == 1


# --- Whether criteria and cases fit ---------------------------------------------------------


def test_a_criterion_that_no_case_can_be_scored_by_is_refused(suite: Suite) -> None:
    suite.evalset("smoke.json", scenario("a"))
    suite.evalset("full.json", scenario("b"))
    why = (
        "cannot score any case: case 'a' needs a written conversation, not a scenario; "
        "change the cases, or remove the criterion"
    )
    assert suite.refusal() == [f"ci-eval.yaml:8: criteria.tool_trajectory_avg_score: {why}"]
    suite.evalset("full.json", scenario("b"), case("c"))
    suite.config(f"{CONFIG}gate: {{allow_unjudged: [a, b]}}\n")
    assert suite.plan().count == 6


def test_a_case_that_expects_no_response_is_warned_of_where_it_scores_0(suite: Suite) -> None:
    suite.config(CONFIG.replace("tool_trajectory_avg_score: 1", "response_match_score: 1"))
    bare = case("b")
    del bare["conversation"][0]["final_response"]
    suite.evalset("full.json", case("a"), bare)
    assert list(map(str, suite.plan().warnings)) == [
        (
            "full.json:1: eval_cases[1].conversation[0]: expects no response, "
            "which scores 0 in ADK's 'response_match_score'"
        )
    ]


def test_warnings_about_many_cases_are_bounded(suite: Suite) -> None:
    suite.config(CONFIG.replace("tool_trajectory_avg_score: 1", "response_match_score: 1"))
    bare = [{"eval_id": f"{n}", "conversation": [{"user_content": {}}]} for n in range(50)]
    suite.evalset("full.json", *bare)
    warnings = suite.plan(evalsets=("full",)).warnings
    assert len(warnings) == 5
    assert warnings[-1].message.endswith("(and in 45 more places, down to line 1)")


# --- Opening one file -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "an empty document"),
        ("{}", "an empty document"),
        ("5", "5"),
        ('"x"', "'x'"),
        ("[5]", "a list"),
        ('{"a": 1, "b": 2}', "an object with 'a', 'b'"),
        ('{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', "an object with 'a', 'b', 'c', 'd', 'e' …"),
    ],
)
def test_what_is_no_evalset_is_told_by_what_it_is(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(EvalSetError) as caught:
        open_evalset(path, shown="a.json")
    known = ", ".join(points.evalset)
    assert str(caught.value) == f"a.json:1: is not a known evalset format ({known}): found {found}"


def test_what_is_no_json_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(EvalSetError, match=r"^a.json: no such file$"):
        open_evalset(path, shown="a.json")
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(EvalSetError, match=r"^a.json:1: is not JSON but a Git LFS pointer "):
        open_evalset(path, shown="a.json")


# --- Warnings that concern one criterion ------------------------------------------------------


def without_args(name: str) -> dict[str, Any]:
    expected = case(name)
    expected["conversation"][0]["intermediate_data"] = {"tool_uses": [{"name": "t"}]}
    return expected


@pytest.mark.parametrize(
    ("criteria", "told"),
    [
        ("tool_trajectory_avg_score: 1", True),
        ("tool_trajectory_avg_score: {threshold: 1, missing_args: any}", False),
        ("tool_trajectory_avg_score: {threshold: 1, ignore_args: true}", False),
        ("ci/required_tools: 1", False),
    ],
)
def test_a_warning_for_the_sake_of_one_criterion_is_told_where_it_is_used(
    suite: Suite, criteria: str, told: bool
) -> None:
    head = CONFIG.partition("criteria:")[0]
    suite.config(f"{head}criteria:\n  {criteria}\n")
    suite.evalset("smoke.json", without_args("a"))
    suite.evalset("full.json", without_args("a"))

    assert any("has no 'args'" in each.message for each in suite.plan().warnings) is told


def test_a_need_is_one_of_the_suite_and_not_of_what_is_asked_for_this_time(suite: Suite) -> None:
    criteria = "criteria: {ci/required_tools: 1}\ngate: {allow_unjudged: [plain]}\n"
    suite.config(CONFIG.partition("criteria:")[0] + criteria)
    suite.evalset("smoke.json", case("plain"), without_args("calls"))

    assert suite.plan(cases=("plain",)).count == 2
    suite.evalset("smoke.json", case("plain"))
    said = "criteria.ci/required_tools: cannot score any case: case 'plain' expects no tool call"
    assert suite.refusal(cases=("plain",)) == [
        f"ci-eval.yaml:7: {said}; change the cases, or remove the criterion"
    ]


def test_cases_may_be_named_behind_a_file_of_any_syntax(suite: Suite) -> None:
    rows = ("- {id: a, prompt: x}\n", "- {id: b, prompt: y, expected_tools: []}\n")
    (suite.folder / "smoke.yaml").write_text("".join(rows))
    suite.evalsets("  smoke: smoke.yaml:b\n")

    assert cases(suite.plan()) == {"smoke": ["b"]}


# --- What is excused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("excuse", "told"),
    [
        ("accept: [{case: a, reason: r, until: 2027-01-01}]", None),
        ("accept: [{criterion: tool_*, reason: r, until: 2027-01-01}]", None),
        ("quarantine: [{case: c_?, owner: o, until: 2027-01-01}]", None),
        (
            "quarantine: [{case: c_3, owner: o, until: 2027-01-01}]",
            "gate.quarantine[0]: covers no case. Did you mean 'c_2'?",
        ),
        (
            "quarantine: [{case: c_1, evalset: smoke, owner: o, until: 2027-01-01}]",
            "gate.quarantine[0]: covers no case; known: a, b",
        ),
        (
            "accept: [{criterion: tool_call_count, reason: r, until: 2027-01-01}]",
            "gate.accept[0]: covers no case. Did you mean 'tool_call_count_v1'?",
        ),
    ],
)
def test_what_is_excused_and_not_there_is_told(suite: Suite, excuse: str, told: str | None) -> None:
    suite.config(f"{CONFIG}baseline: {{store: file}}\ngate: {{{excuse}}}\n")

    warnings = [str(each) for each in suite.plan().warnings]
    assert warnings == ([f"ci-eval.yaml:11: {told}"] if told else [])
    # A part of the suite tells nothing of the rest.
    assert suite.plan(cases=("b",)).warnings == ()
