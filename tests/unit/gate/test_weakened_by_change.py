"""What a change brings along of what it is judged by."""

from pathlib import Path

import pytest
from support.git_repositories import ENV, Repo, clone
from support.run_language import meta

from ci_eval.config.criterion_facts import facts_of
from ci_eval.config.load_config import load
from ci_eval.gate.weakened_by_change import rewritten
from ci_eval.runtime.context import RunContext

pytestmark = pytest.mark.processes

CONFIG = """\
name: shop
agents: {a: {recorded: t.jsonl}}
evalsets: {e: e.json}
criteria: {response_match_score: 0.5}
"""
FILE = "baseline: {store: file, path: kept.json}\n"
GATE = "gate: {max_drop: 0.01}\nrun: {repeats: 2}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


def said(
    repo: Repo, *, compared: bool = False, folder: str = ".", name: str = "ci-eval.yaml"
) -> list[str]:
    root = repo.folder / folder
    (root / "t.jsonl").touch()
    context = RunContext(env=ENV, root=root, now=lambda: 0.0)
    config = load(root / name, shown=name, context=context)
    store, gate = (
        each.model_dump(mode="json", exclude_defaults=True) if each else {}
        for each in (config.baseline, config.gate)
    )
    run = meta(
        gate=gate,
        store={"store": config.baseline.type_name, **store} if config.baseline else {},
        configured_repeats=config.run.repeats,
        disabled=config.disabled,
        evalsets={
            name: {"eval_set_id": name, "path": from_top(context, each.path), "format": "cases"}
            for name, each in config.evalsets.items()
        },
        criteria={
            name: facts_of(each, config.judging, context) for name, each in config.criteria.items()
        },
    )
    return [*rewritten(config, run, context, compared=compared)]


def from_top(context: RunContext, path: str) -> str:
    """Return the path of an evalset as a run describes it: from the top of the repository."""
    return context.clone.inside(path) if context.clone.top else path


@pytest.mark.parametrize("compared", [True, False])
def test_a_file_of_runs_that_comes_with_the_change_is_told(repo, compared):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE, "kept.json": "1"})
    repo.on("work").commit(**{"kept.json": "2"})

    assert said(repo, compared=compared) == ["baseline: kept.json is part of this change"]


def test_a_first_file_of_runs_comes_with_the_change_too(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE})
    repo.on("work").commit(**{"kept.json": "1"})

    assert said(repo) == ["baseline: kept.json is part of this change"]


def test_a_file_that_only_the_base_branch_changed_does_not_come_with_the_change(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE, "kept.json": "1"})
    repo.on("work").commit()
    repo.git("checkout", "--quiet", "main")
    repo.commit(**{"kept.json": "2"})
    repo.git("checkout", "--quiet", "work")

    assert said(repo) == []


def test_what_is_not_committed_is_not_part_of_the_change(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE, "kept.json": "1"})
    repo.on("work").commit()
    repo.write("kept.json", "2")

    assert said(repo) == []


def test_on_the_base_branch_itself_nothing_is_told(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE, "kept.json": "1"})
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE + "gate: {max_drop: 0.5}\n", "kept.json": "2"})

    assert said(repo) == []


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (CONFIG, "baseline: removed"),
        (CONFIG + FILE.replace("kept", "other"), "baseline: location changed"),
        (
            (CONFIG + FILE).replace("shop", "store"),
            "name: 'shop' → 'store', which has its own baseline runs",
        ),
    ],
)
def test_a_baseline_that_cannot_be_found_any_more_is_told(repo, now, told):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE + GATE})
    repo.on("work").commit(**{"ci-eval.yaml": now + GATE})

    assert said(repo) == [told]


@pytest.mark.parametrize("compared", [False, True])
def test_the_gate_is_compared_with_that_of_the_base(repo, compared):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE + GATE})
    loose = "gate: {max_drop: 0.5, on_missing: pass}\n"
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG + FILE + loose})

    # A stored run may be older than what the change takes back.
    assert said(repo, compared=compared) == [
        "gate.on_missing: threshold → pass",
        "gate.max_drop: 0.01 → 0.5",
        "run.repeats: 2 → 1",
    ]


def test_a_branch_without_a_change_changes_nothing(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE})
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE, "kept.json": "1"})
    repo.on("work")

    assert said(repo) == []


def test_a_configuration_in_a_folder_is_found_there(repo):
    repo.commit(**{"eval/ci-eval.yaml": CONFIG + FILE, "ci-eval.yaml": CONFIG})
    repo.on("work").commit(**{"eval/ci-eval.yaml": CONFIG, "eval/kept.json": "1"})

    assert said(repo, folder="eval") == ["baseline: removed"]
    assert said(repo) == []


@pytest.mark.parametrize("before", ["- a list\n", "a: [", "gate: {max_drop: much}\n" + CONFIG])
def test_a_configuration_that_was_none_tells_nothing(repo, before):
    repo.commit(**{"ci-eval.yaml": before})
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG})

    assert said(repo) == []


@pytest.mark.parametrize("new", ["new/ci-eval.yaml", "new/other.yml"])
def test_a_configuration_that_moved_has_other_runs_and_is_compared_with_what_it_was(repo, new):
    texts = {f"old/{name}.yaml": "agents: no\n" for name in "abc"}
    repo.commit(**{"old/ci-eval.yaml": CONFIG + FILE + GATE, **texts})
    repo.on("work")
    repo.git("rm", "--quiet", "-r", "old")
    repo.commit(**{new: CONFIG + FILE})

    first, *more = said(repo, folder="new", name=new.removeprefix("new/"))
    assert (
        first
        == f"configuration: moved from old/ci-eval.yaml to {new}, which has its own baseline runs"
    )
    assert any(each.startswith("gate.max_drop") for each in more)


def test_a_configuration_that_a_partial_clone_lacks_is_fetched(repo, tmp_path):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE + GATE})
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG + FILE})
    repo.git("checkout", "--quiet", "main")
    repo.git("config", "uploadpack.allowFilter", "true")
    partial = clone(repo.folder, tmp_path / "partial", "--filter=blob:none", "--branch=work")

    told = said(partial)
    repo.git("checkout", "--quiet", "work")
    assert told == said(repo) != []


def test_a_first_configuration_moved_from_nowhere(repo):
    repo.commit(**{"a.yaml": "agents: no\n"})
    repo.on("work")
    repo.git("rm", "--quiet", "a.yaml")
    repo.commit(**{"new/ci-eval.yaml": CONFIG})

    assert said(repo, folder="new") == []


def test_outside_a_repository_nothing_is_told(repo, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "ci-eval.yaml").write_text(CONFIG + FILE)
    repo.commit()

    assert said(repo, folder="../plain") == []


# --- Files that are part of the change ------------------------------------------------------------


@pytest.mark.parametrize("compared", [True, False])
def test_a_recording_that_comes_with_the_change_is_told(repo, compared):
    repo.commit(**{"ci-eval.yaml": CONFIG, "t.jsonl": "\n"})
    repo.on("work").commit(**{"t.jsonl": "\n\n"})

    expected = ["agent a: its recording t.jsonl is part of this change"]
    assert said(repo, compared=compared) == expected


def test_a_recording_behind_a_symlink_is_told(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG, "real.jsonl": "\n"})
    (repo.folder / "t.jsonl").symlink_to("real.jsonl")
    repo.commit()
    repo.on("work").commit(**{"real.jsonl": "\n\n"})

    assert said(repo) == ["agent a: its recording t.jsonl is part of this change"]


@pytest.mark.parametrize("compared", [True, False])
def test_an_agent_that_becomes_a_recording_is_told(repo, compared):
    run = CONFIG.replace("recorded: t.jsonl", "python: 'm:f'")
    repo.commit(**{"ci-eval.yaml": run})
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG, "t.jsonl": "\n"})

    assert said(repo, compared=compared) == [
        "agent a: a recording instead of the agent",
        "agent a: its recording t.jsonl is part of this change",
    ]


def test_a_recording_of_a_new_agent_weakens_nothing(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG})
    more = CONFIG.replace("}}\nevalsets", "}, b: {recorded: b.jsonl}}\nevalsets")
    repo.on("work").commit(**{"ci-eval.yaml": more, "b.jsonl": "\n"})

    assert said(repo) == []


JUDGED = CONFIG.replace("response_match_score", "final_response_match_v2")
CASSETTE = JUDGED + "judge: {cassette: kept/judge.jsonl, env_file: judge.env}\n"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            CASSETTE,
            [
                "judge: its cassette kept/judge.jsonl is part of this change",
                "judge: its judge.env is part of this change",
            ],
        ),
        (
            CASSETTE.replace("judge.env}", "judge.env, mode: record}"),
            ["judge: its judge.env is part"],
        ),
        # No criterion asks a judge.
        (CASSETTE.replace("final_response_match_v2", "response_match_score"), []),
    ],
)
def test_what_judges_are_answered_from_is_told(repo, config, told):
    repo.commit(**{"ci-eval.yaml": config, "judge.env": ""})
    repo.on("work").commit(**{"kept/judge.jsonl": "{}\n", "judge.env": "A=b\n"})

    found = said(repo, compared=True)
    assert len(found) == len(told)
    assert all(each.startswith(start) for each, start in zip(found, told, strict=True))


def test_a_first_judge_weakens_nothing(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG})
    judged = CASSETTE.replace("0.5}", "0.5, response_match_score: 0.5}")
    repo.on("work").commit(**{"ci-eval.yaml": judged, "kept/judge.jsonl": "{}\n"})

    assert said(repo) == said(repo, compared=True) == []


PYTHON = CONFIG.replace(
    "{response_match_score: 0.5}", "{polite: {use: ci/python, python: 'checks.polite:score'}}"
)
CODE = {
    "eval/checks/__init__.py": "",
    "eval/checks/polite.py": "from .words import KIND\nimport os, json\n",
    "eval/checks/words.py": "def kind():\n    from shared import words\n",
    "src/shared/__init__.py": "",
    "src/shared/words.py": "import missing\n",
    "eval/unused.py": "",
}


@pytest.mark.parametrize("compared", [True, False])
@pytest.mark.parametrize(
    "changed", ["eval/checks/polite.py", "eval/checks/words.py", "src/shared/words.py"]
)
def test_code_of_a_criterion_is_told_with_what_it_imports(repo, changed, compared):
    repo.commit(**{"eval/ci-eval.yaml": PYTHON, **CODE})
    repo.on("work").commit(**{changed: CODE[changed] + "1\n", "eval/unused.py": "1\n"})

    expected = [f"criterion polite: its code {changed} is part of this change"]
    assert said(repo, compared=compared, folder="eval") == expected


def test_code_on_the_path_of_python_is_told(repo, monkeypatch):
    monkeypatch.setitem(ENV, "PYTHONPATH", "lib:/elsewhere")
    code = {"lib/checks/polite.py": "import words\n", "lib/words.py": ""}
    repo.commit(**{"ci-eval.yaml": PYTHON, **code})
    repo.on("work").commit(**{"lib/words.py": "1\n"})

    assert said(repo) == ["criterion polite: its code lib/words.py is part of this change"]


def test_many_files_of_code_are_counted(repo):
    imports = "".join(f"import m{n}\n" for n in range(5))
    modules = {f"m{n}.py": "" for n in range(5)}
    repo.commit(**{"ci-eval.yaml": PYTHON, "checks/polite.py": imports, **modules})
    repo.on("work").commit(**dict.fromkeys(modules, "1\n"))

    (found,) = said(repo)
    assert found.endswith("its code m0.py, m1.py, m2.py and 2 more is part of this change")


FROM = CONFIG.replace("{response_match_score: 0.5}", "{from: ../test_config.json}")


def test_what_from_includes_is_compared_value_by_value(repo):
    before = '{"criteria": {"response_match_score": 0.5, "tool_trajectory_avg_score": 1.0}}'
    after = '{"criteria": {"response_match_score": 0.3}}'
    repo.commit(**{"eval/ci-eval.yaml": FROM, "test_config.json": before})
    repo.on("work").commit(**{"test_config.json": after})

    assert said(repo, folder="eval") == [
        "threshold of response_match_score: 0.5 → 0.3",
        "criterion tool_trajectory_avg_score is removed",
    ]


def test_an_eval_config_that_cannot_be_compared_is_told(repo):
    repo.commit(**{"ci-eval.yaml": FROM.replace("../test", "lost")})
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG})

    expected = "criteria: the earlier lost_config.json cannot be read and is not compared"
    assert said(repo) == [expected]


def test_prompts_of_judges_are_compared(repo):
    prompt = Path(__file__).parents[3] / "templates/judge/adk/final_response_match_v2.md.j2"
    folder = JUDGED + "judge: {prompts: prompts}\n"
    place = "prompts/adk/final_response_match_v2.md.j2"
    text = prompt.read_text(encoding="utf-8")
    repo.commit(**{"ci-eval.yaml": folder, place: text})
    repo.on("work").commit(**{place: text + "{# lenient #}"})

    expected = "criterion final_response_match_v2 changed its definition"
    assert said(repo) == [expected]


def test_a_floor_replaces_the_demand_that_every_case_passes(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG})
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG + "gate: {min_pass_rate: 0.2}\n"})

    assert said(repo) == ["gate.min_pass_rate: 1 → 0.2"]


def test_a_pass_rate_beside_the_comparison_weakens_nothing(repo):
    before = CONFIG + "baseline: {store: file}\n"
    repo.commit(**{"ci-eval.yaml": before})
    more = before + "gate: {mode: both, min_pass_rate: 0.9}\n"
    repo.on("work").commit(**{"ci-eval.yaml": more})

    assert said(repo) == []


CASES = """\
cases:
- {id: x, prompt: Hello, expected: Hi}
- {id: y, prompt: Bye, tags: [core], expected: Bye}
"""


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (CASES.replace("expected: Hi", "expected: Yo"), ["evalset e: 1 case changed or removed"]),
        ("cases:\n- {id: z, prompt: Bye}\n", ["evalset e: 2 cases changed or removed"]),
        (CASES + "- {id: z, prompt: Again, expected: Yes}\n", []),
        (CASES.replace("{id: x,", "{id: x, tags: [new],"), []),
        (CASES.replace("Hello,", "Hello, tags: [slow],"), []),
        (CASES.replace("[core]", "[slow]"), ["evalset e: 1 case changed or removed"]),
    ],
)
def test_cases_that_change_are_told_whether_or_not_there_is_a_stored_run(repo, after, told):
    config = CONFIG.replace("e.json", "e.yaml")
    repo.commit(**{"ci-eval.yaml": config, "e.yaml": CASES})
    repo.on("work").commit(**{"e.yaml": after})

    assert said(repo) == told
    assert said(repo, compared=True) == told


def test_a_file_that_a_pattern_fitted_is_missed(repo):
    config = CONFIG.replace("e.json", '"evals/*.yaml"')
    kept = {"evals/a.yaml": CASES, "evals/inner/c.yaml": CASES}
    repo.commit(**{"ci-eval.yaml": config, "evals/b.yaml": CASES, **kept})
    repo.on("work").git("mv", "evals/b.yaml", "evals/z.yaml")
    repo.git("rm", "--quiet", "evals/inner/c.yaml")
    repo.commit()

    assert said(repo) == ["evalset e: evals/b.yaml is removed"]


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("evals/**/*.yaml", "evals/b.yaml"),
        ("evals/**/*.yaml", "evals/one/two/b.yaml"),
        ("**/*.evalset.yaml", "b.evalset.yaml"),
        ("evals/*.yaml:case1", "evals/b.yaml"),
        ("more/../evals/*.yaml", "evals/b.yaml"),
        ("evals/**", "evals/one/b.yaml"),
    ],
)
def test_a_file_is_missed_if_globbing_found_it(repo, pattern, path):
    config = CONFIG.replace("e.json", f'"{pattern}"')
    repo.commit(**{"ci-eval.yaml": config, "evals/a.yaml": CASES, path: CASES})
    repo.on("work").git("rm", "--quiet", path)
    repo.commit()

    assert said(repo) == [f"evalset e: {path} is removed"]


def test_what_is_behind_a_link_is_compared_as_well(repo):
    (repo.folder / "evals").symlink_to("data")
    (repo.folder / "ci-eval.yaml").symlink_to("conf.yaml")
    config = CONFIG.replace("e.json", "evals/a.yaml").replace("t.jsonl", "now/t.jsonl")
    (repo.folder / "now").symlink_to("v2")
    (repo.folder / "v2").mkdir()
    repo.commit(**{"conf.yaml": config, "data/a.yaml": CASES, "v1/t.jsonl": "", "v2/t.jsonl": ""})
    repo.on("work")
    (repo.folder / "now").unlink()
    (repo.folder / "now").symlink_to("v1")
    cases = CASES.replace("expected: Hi", "expected: Yo")
    repo.commit(**{"conf.yaml": config.replace("0.5", "0.1"), "data/a.yaml": cases})

    assert said(repo) == [
        "threshold of response_match_score: 0.5 → 0.1",
        "agent a: its recording now/t.jsonl is part of this change",
        "evalset e: 1 case changed or removed",
    ]


def test_what_is_in_a_submodule_is_compared_as_well(repo, tmp_path):
    data = Repo(tmp_path / "data")
    data.commit(**{"a.yaml": CASES, "t.jsonl": ""})
    allowed = ("-c", "protocol.file.allow=always")
    repo.git(*allowed, "submodule", "--quiet", "add", data.folder.as_uri(), "evals")
    config = CONFIG.replace("e.json", "evals/a.yaml").replace("t.jsonl", "evals/t.jsonl")
    repo.commit(**{"ci-eval.yaml": config})
    repo.on("work")
    assert said(repo) == []
    data.commit(**{"a.yaml": CASES.replace("expected: Hi", "expected: Yo")})
    repo.git(*allowed, "submodule", "--quiet", "update", "--remote")
    repo.commit()

    assert said(repo) == [
        "agent a: its recording evals/t.jsonl is part of this change",
        "evalset e: 1 case changed or removed",
    ]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_configuration_in_a_linked_folder_is_compared(repo, elsewhere):
    (repo.folder / "conf").symlink_to("strict")
    lax = CONFIG.replace("0.5", "0.1")
    repo.commit(**{"strict/ci-eval.yaml": CONFIG, "lax/ci-eval.yaml": lax})
    repo.on("work")
    if elsewhere:
        (repo.folder / "conf").unlink()
        (repo.folder / "conf").symlink_to("lax")
        told = [
            "configuration: conf/ci-eval.yaml leads to another file than before",
            "agent a: its recording t.jsonl is part of this change",
        ]
    else:
        repo.write("strict/ci-eval.yaml", lax)
        told = ["threshold of response_match_score: 0.5 → 0.1"]
    repo.commit()

    assert said(repo, folder="conf") == told


def test_a_clone_that_is_reached_through_a_link_is_compared_like_any(repo, tmp_path):
    (repo.folder / "conf").symlink_to("real")
    config = CONFIG.replace("e.json", "e.yaml")
    repo.commit(**{"real/ci-eval.yaml": config + FILE, "real/e.yaml": CASES, "real/t.jsonl": ""})
    repo.on("work").commit(**{"bot.py": "# changed"})
    (tmp_path / "link").symlink_to(repo.folder, target_is_directory=True)
    seen = [str(tmp_path / "link" / each) for each in ("real", "conf")]

    assert [said(repo, folder=each) for each in seen] == [[], []]
    repo.commit(**{"real/ci-eval.yaml": config.replace("0.5", "0.1") + FILE})
    assert {*map(tuple, (said(repo, folder=each) for each in seen))} == {
        ("threshold of response_match_score: 0.5 → 0.1",)
    }


def test_criteria_behind_a_link_are_compared(repo):
    (repo.folder / "now.json").symlink_to("conf/criteria.json")
    strict = '{"criteria": {"response_match_score": 0.5}}'
    from_file = CONFIG.replace("{response_match_score: 0.5}", "{from: now.json}")
    repo.commit(**{"ci-eval.yaml": from_file, "conf/criteria.json": strict})
    repo.on("work").commit(**{"conf/criteria.json": strict.replace("0.5", "0.1")})

    assert said(repo) == ["threshold of response_match_score: 0.5 → 0.1"]


def test_a_first_baseline_replaces_the_demand_that_every_case_passes(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG})
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG + "baseline: {store: merge_base}\n"})

    assert said(repo) == ["gate.mode: threshold → regression"]


def test_a_new_evalset_weakens_nothing_and_an_unreadable_earlier_one_is_told(repo):
    config = CONFIG.replace("e.json", "e.yaml")
    repo.commit(**{"ci-eval.yaml": config})
    repo.on("work").commit(**{"e.yaml": CASES})
    assert said(repo) == []

    repo.git("checkout", "--quiet", "main")
    repo.commit(**{"e.yaml": "nonsense"})
    repo.on("more").commit(**{"e.yaml": CASES})
    assert said(repo) == ["evalset e: the earlier e.yaml cannot be read"]


BUILT = CONFIG.replace("e.json", "evals/conf.py:E")


def test_code_that_builds_an_evalset_is_told_with_what_it_imports(repo):
    code = {"evals/conf.py": "import evals.words\n", "evals/words.py": "", "evals/new.py": ""}
    repo.commit(**{"ci-eval.yaml": BUILT, **code})
    more = BUILT.replace("{e:", "{new: evals/new.py, e:")
    change = {"evals/words.py": "1\n", "evals/new.py": "1\n", "ci-eval.yaml": more}
    repo.on("work").commit(**change)

    told = ["evalset e: its code evals/words.py is part of this change"]
    assert said(repo) == told
    assert said(repo, compared=True) == told  # the stored run may be older


def test_an_earlier_eval_config_in_another_python_file_is_not_compared(repo):
    before = CONFIG.replace("{response_match_score: 0.5}", "{from: conf.py}")
    repo.commit(**{"ci-eval.yaml": before, "conf.py": "raise SystemExit"})
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG})

    expected = "criteria: the earlier conf.py cannot be read and is not compared"
    assert said(repo) == [expected]
