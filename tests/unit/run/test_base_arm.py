"""The work tree of the merge base: what is in it, and why there may be none."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.git_repositories import ENV, Repo, clone

from ci_eval.config.load_config import load
from ci_eval.run.base_arm import NoBaseArmError, base_arm
from ci_eval.run.plan import Plan, plan
from ci_eval.runtime.context import RunContext

CONFIG = """\
agents: {bot: {python: "bot:answer"}, told: {recorded: traces.jsonl}}
evalsets: {smoke: ../evals/smoke.csv}
criteria: {response_match_score: 0.8}
run: {repeats: 2}
"""
CASES = "id,prompt,expected\na,one,yes\nb,two,yes\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Return a suite in a folder of its own, whose evalset is beside the folder."""
    repo = Repo(tmp_path / "repo")
    files = {"suite/ci-eval.yaml": CONFIG, "suite/traces.jsonl": "", "suite/bot.py": "OLD = 1\n"}
    repo.commit("base", **files, **{"evals/smoke.csv": CASES})
    return repo


def planned(repo: Repo) -> tuple[Plan, RunContext]:
    root = repo.folder / "suite"
    context = RunContext(env={**ENV}, root=root, now=lambda: 0.0)
    config = load(root / "ci-eval.yaml", shown="suite/ci-eval.yaml", context=context)
    return plan(config, context), context


def test_the_merge_base_is_checked_out_and_removed_again(repo):
    base = repo.head
    repo.commit("change", **{"suite/bot.py": "NEW = 1\n"})
    with base_arm(*planned(repo), base) as arm:
        root = arm.context.root
        assert (root / "bot.py").read_text() == "OLD = 1\n"
        assert root.name == "suite"
        assert arm.commit == base

    assert not root.exists()
    assert not root.parent.parent.exists()
    assert (repo.folder / "suite/bot.py").read_text() == "NEW = 1\n"
    assert repo.git("status", "--porcelain") == ""


def test_what_both_know_with_the_same_content_is_tried_and_no_recording(repo):
    base = repo.head
    changed = CASES.replace("two", "another") + "c,three,yes\n"
    repo.commit("change", **{"evals/smoke.csv": changed})
    with base_arm(*planned(repo), base) as arm:
        keys = [trial.key for trial in arm.plan.trials()]

    assert [(key.agent, key.case, key.repeat) for key in keys] == [("bot", "a", 0), ("bot", "a", 1)]


def test_agents_are_those_of_the_merge_base_and_criteria_those_of_the_change(repo):
    base = repo.head
    config = CONFIG.replace("bot:answer", "new:answer").replace("0.8", "0.5")
    repo.commit("change", **{"suite/ci-eval.yaml": config})
    with base_arm(*planned(repo), base) as arm:
        assert arm.plan.config.agents["bot"].python == "bot:answer"
        (criterion,) = arm.plan.criteria.values()
        assert criterion.threshold == 0.5


def test_a_path_of_the_change_that_python_searches_is_moved(repo):
    base = repo.head
    change, context = planned(repo)
    places = f"{repo.folder / 'src'}:/opt/lib"
    context = RunContext(env={**ENV, "PYTHONPATH": places}, root=context.root, now=lambda: 0.0)
    with base_arm(change, context, base) as arm:
        tree = arm.context.root.parent
        assert arm.context.env["PYTHONPATH"] == f"{tree / 'src'}:/opt/lib"
        assert arm.context.change is context


def with_command(repo: Repo, command: str) -> str:
    """Commit an agent that is a command, and return the commit."""
    (repo.folder / ".venv").mkdir()
    (repo.folder / ".venv/pyvenv.cfg").write_text("")
    link = repo.folder.with_name("link")
    link.symlink_to(repo.folder)
    command = command.format(top=repo.folder, link=link)
    config = CONFIG.replace('python: "bot:answer"', f"command: {command}")
    return repo.commit("base", **{"suite/ci-eval.yaml": config})


@pytest.mark.parametrize(
    "command",
    [
        "[sh, {top}/suite/bot.py]",
        "[sh, {link}/suite/bot.py]",
        "[sh, -c, 'cd {top} && ./bot.py']",
        "[sh], env: {{PYTHONPATH: '/opt/lib:{top}/lib'}}",
    ],
)
def test_an_agent_that_names_the_work_tree_of_the_change_is_not_its_base(repo, command):
    base = with_command(repo, command)
    reason = "which has the code of the change"

    with pytest.raises(NoBaseArmError, match=reason), base_arm(*planned(repo), base):
        pass


@pytest.mark.parametrize(
    "command",
    [
        "[sh, 'https://example.com{top}/chat']",
        "[sh, '{top}2/data']",
        "[sh, '{top}/.venv/bin/python']",
    ],
)
def test_a_path_that_leads_elsewhere_or_to_dependencies_is_no_code_of_the_change(repo, command):
    base = with_command(repo, command)

    with base_arm(*planned(repo), base) as arm:
        assert "bot" in arm.plan.config.agents


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"suite/ci-eval.yaml": "agents: []\n"}, "suite/ci-eval.yaml"),
        ({"suite/ci-eval.yaml": CONFIG.replace("bot:", "other:", 1)}, "all agents only replay"),
        ({"evals/smoke.csv": CASES.replace(",yes", ",no")}, "case that the merge base also has"),
    ],
)
def test_why_the_merge_base_cannot_be_run_is_said(repo, files, reason):
    now = planned(repo)
    base = repo.commit("an older state", **files)

    with pytest.raises(NoBaseArmError, match=reason), base_arm(*now, base):
        pass


def test_a_merge_base_without_the_configuration_or_that_the_clone_lacks_is_named(repo):
    now = planned(repo)
    repo.git("rm", "--quiet", "suite/ci-eval.yaml")
    without = repo.commit("no configuration")

    for commit, reason in (
        (without, "suite/ci-eval.yaml is not in the merge base"),
        ("0123456" * 5 + "01234", "lacks the merge base 0123456"),
        (None, "is unknown"),
    ):
        with pytest.raises(NoBaseArmError, match=reason), base_arm(*now, commit):
            pass


@pytest.mark.parametrize(
    ("more", "env", "advice"),
    [
        ("", {}, "name the base branch in `baseline.base`, and fetch it"),
        ("baseline: {store: merge_base, base: main}\n", {}, "fetch the branch 'main'"),
        ("", {"GITHUB_BASE_REF": "trunk"}, "fetch the branch 'trunk'"),
    ],
)
def test_a_base_branch_that_is_named_only_has_to_be_fetched(repo, more, env, advice):
    repo.commit("change", **{"suite/ci-eval.yaml": CONFIG + more})
    change, context = planned(repo)
    context = replace(context, env={**context.env, **env})

    with pytest.raises(NoBaseArmError) as caught, base_arm(change, context, None):
        pass
    assert str(caught.value) == f"the merge base is unknown; {advice}"


def test_a_shallow_clone_has_to_be_deepened(repo, tmp_path):
    base = repo.head
    repo.on("change").commit("change")
    shallow = clone(repo.folder, tmp_path / "shallow", "--depth=1", "--no-single-branch")

    reason = "the clone is shallow; check out with `fetch-depth: 0`, or run `git fetch --unshallow`"
    with pytest.raises(NoBaseArmError, match=reason), base_arm(*planned(shallow), None):
        pass
    shallow.git("fetch", "--quiet", "--unshallow")
    with base_arm(*planned(shallow), base) as arm:
        assert arm.commit == base


def test_programs_of_the_change_are_not_those_of_the_merge_base(repo):
    python = '{python: "bot:answer", interpreter: ./run-python}'
    config = CONFIG.replace('{python: "bot:answer"}', python)
    base = repo.commit("its own Python", **{"suite/ci-eval.yaml": config})
    program = repo.folder / "suite/run-python"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    repo.commit("change")

    now = planned(repo)
    with pytest.raises(NoBaseArmError, match="there is no program"), base_arm(*now, base):
        pass


def test_without_a_repository_there_is_no_merge_base(tmp_path, repo):
    change, _ = planned(repo)
    elsewhere = RunContext(env={**ENV}, root=tmp_path, now=lambda: 0.0)

    no_repository = pytest.raises(NoBaseArmError, match="not in a git repository")
    with no_repository, base_arm(change, elsewhere, repo.head):
        pass
