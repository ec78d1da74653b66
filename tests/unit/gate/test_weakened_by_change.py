"""What a change brings along of what it is judged by."""

from pathlib import Path

import pytest
from support.git_repositories import ENV, Repo, clone
from support.run_language import meta

from ci_eval.config.criterion_facts import facts_of
from ci_eval.config.load import load
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
        repeats=config.run.repeats,
        disabled=config.disabled,
        criteria={
            name: facts_of(each, config.judging, context) for name, each in config.criteria.items()
        },
    )
    return [*rewritten(config, run, context, compared=compared)]


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


def test_without_a_run_to_compare_with_the_gate_is_compared_with_that_of_the_base(repo):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE + GATE})
    loose = "gate: {max_drop: 0.5, on_missing: pass}\n"
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG + FILE + loose})

    assert said(repo) == [
        "gate.on_missing: threshold → pass",
        "gate.max_drop: 0.01 → 0.5",
        "run.repeats: 2 → 1",
    ]
    # The run that it is compared with knows all that.
    assert said(repo, compared=True) == []


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


def test_a_configuration_that_a_partial_clone_lacks_is_told(repo, tmp_path):
    repo.commit(**{"ci-eval.yaml": CONFIG + FILE + GATE})
    repo.on("work").commit(**{"ci-eval.yaml": CONFIG + FILE})
    repo.git("checkout", "--quiet", "main")
    repo.git("config", "uploadpack.allowFilter", "true")
    partial = clone(repo.folder, tmp_path / "partial", "--filter=blob:none", "--branch=work")

    expected = "configuration: the earlier ci-eval.yaml is missing from this partial clone"
    assert said(partial) == [expected]


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
