"""Criteria and evalsets that a Python file builds, read by running it as an agent runs.

What AgentFlow's own classes give needs CI_EVAL_AGENTFLOW_PYTHON; the rest any Python shows.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.framework_agents import interpreter
from support.git_repositories import Repo, git_init
from support.project import Project, problems

from ci_eval.runtime.workers import worker_link

pytestmark = pytest.mark.processes

CONFIG = """\
name: shop
agents:
  bot: {{python: "shop:answer", interpreter: {python}, env: {{SHOP_CODE: null}}}}
evalsets: {{shop: "{evalset}"}}
criteria: {{from: "{criteria}"}}
{more}
"""
NONE = "it defines no EvalConfig, and no function annotated with `-> EvalConfig`"
ANSWER = "def answer(message):\n    return 'We are open.'\n"
CONF = """\
import os
from agentflow.qa.evaluation import EvalCase, EvalConfig, EvalPresets, EvalSet, EvalSetBuilder

print('{"id":1,"seconds":0,"reply":{}}')
os.write(1, b'{"failed":"printed"}')

CONFIG = EvalPresets.quick_check()

def shop() -> EvalSet:
    builder = EvalSetBuilder("shop").add_case("Open?", "We are open.", case_id="open")
    return builder.add_case("Closed?", "We are open.", case_id="closed").build()
"""


class Shop(Project):
    """A project whose criteria and evalsets are in `evals/conf.py`."""

    python = sys.executable

    def configure(self, evalset: str, criteria: str, more: str = "") -> None:
        fields = {"python": self.python, "evalset": evalset, "criteria": criteria, "more": more}
        self.config(CONFIG.format(**fields))

    def repo(self) -> Repo:
        git_init(self.folder)
        self.write(".gitignore", "ci-eval-report\n__pycache__\n")
        return Repo(self.folder)

    def conf(self, text: str) -> None:
        self.write("evals/conf.py", text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shop:
    monkeypatch.chdir(tmp_path)
    found = Shop(tmp_path, capsys)
    found.write("shop.py", ANSWER)
    found.configure("evals/conf.py", "evals/conf.py")
    return found


@pytest.fixture
def agentflow(shop: Shop) -> Shop:
    shop.python = interpreter("agentflow")
    shop.configure("evals/conf.py", "evals/conf.py")
    shop.conf(CONF)
    return shop


# --- With AgentFlow -------------------------------------------------------------------------


def test_what_agentflow_builds_is_run_and_scored(agentflow: Shop) -> None:
    ended = agentflow.ci_eval("run")

    assert (ended.code, problems(ended)) == (0, ["running evals/conf.py"] * 2 + ["2 trials"])
    assert agentflow.scores() == {"open": {"rouge_match": 1.0}, "closed": {"rouge_match": 1.0}}
    meta = agentflow.run_json()["meta"]
    assert meta["evalsets"]["shop"]["path"] == "evals/conf.py"
    assert meta["criteria"]["rouge_match"]["threshold"] == 0.5


@pytest.mark.parametrize("name", ["CONFIG", "made", "Some.one"])
def test_one_of_several_is_named(agentflow: Shop, name: str) -> None:
    agentflow.conf(
        CONF + "def made(threshold=0.5): return CONFIG.model_copy()\n"
        "class Some: one = CONFIG\nSTRICT = EvalConfig.strict()\n"
    )
    agentflow.configure("evals/conf.py:shop", f"evals/conf.py:{name}")

    assert agentflow.ci_eval("run").code == 0
    assert list(agentflow.scores()["open"]) == ["rouge_match"]


def test_the_names_that_agentflow_eval_knows_come_first(agentflow: Shop) -> None:
    agentflow.conf(CONF.replace("def shop", "OTHER = EvalConfig()\ndef get_eval_set"))
    agentflow.write("evals/confeval.py", "from evals.conf import CONFIG as EVAL_CONFIG, OTHER\n")
    agentflow.configure("evals/conf.py", "evals/confeval.py")

    assert agentflow.ci_eval("run").code == 0
    assert list(agentflow.scores()) == ["open", "closed"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            "OTHER = EvalConfig()\n",
            "it defines several of type EvalConfig: CONFIG, OTHER; name one, as in 'evals/conf.py:",
        ),
        ("CONFIG = EvalCase(eval_id='a')\n", NONE),
        (
            "def get_eval_config(): return [CONFIG]\n",
            "'get_eval_config' must be or return an AgentFlow EvalConfig; found list",
        ),
    ],
)
def test_what_cannot_be_chosen_is_told(agentflow: Shop, more: str, told: str) -> None:
    agentflow.conf(CONF + more)

    assert f"criteria.from: cannot load 'evals/conf.py': {told}" in agentflow.ci_eval("run").err


def test_random_ids_are_replaced_by_ids_that_stay(agentflow: Shop) -> None:
    agentflow.conf(
        CONF + "CASES = [EvalCase(conversation=each.conversation) for each in shop().eval_cases]\n"
        "SHOP = EvalSet(eval_cases=CASES)\n"
    )
    agentflow.configure("evals/conf.py:SHOP", "evals/conf.py")

    ran = []
    for _ in range(2):
        agentflow.ci_eval("run")
        ran.append([*agentflow.scores()])
    assert ran[0] == ran[1]
    assert [name.partition("-")[0] for name in ran[0]] == ["unnamed", "unnamed"]


def test_validate_and_plan_run_it_only_if_told_to(agentflow: Shop) -> None:
    agentflow.conf(CONF + "open('ran', 'w')\n")

    refused, checked = agentflow.ci_eval("plan"), agentflow.ci_eval("validate")
    assert (refused.code, checked.code) == (4, 0)
    for ended, prefix in ((refused, ""), (checked, "warning: ")):
        assert [line.partition(", ")[0] for line in problems(ended)] == [
            f"{prefix}ci-eval.yaml:5: criteria.from: evals/conf.py is Python",
            f"{prefix}ci-eval.yaml:4: evalsets.shop: evals/conf.py is Python",
        ]
    assert not (agentflow.folder / "ran").exists()

    assert "2 trials" in agentflow.ci_eval("plan", "--run-python").out
    assert "2 cases: ok" in agentflow.ci_eval("validate", "--run-python").out
    assert (agentflow.folder / "ran").exists()


def test_an_invalid_value_is_told_with_its_place_in_it(agentflow: Shop) -> None:
    agentflow.conf(CONF + "CONFIG.criteria.rouge_match.threshold = 3\n")

    told = "evals/conf.py:1: criteria.rouge_match: the threshold must lie between 0 and 1"
    assert told in agentflow.ci_eval("run").err


def test_both_arms_build_their_own(agentflow: Shop) -> None:
    repo = agentflow.repo()
    more = "baseline: {store: file}\nrun: {concurrency: 2}"
    agentflow.configure("evals/conf.py", "evals/conf.py", more)
    repo.commit()
    assert agentflow.ci_eval("run").code == 0
    assert agentflow.ci_eval("baseline", "save").code == 0
    repo.commit("baseline")
    repo.on("change").commit(
        **{
            "shop.py": ANSWER.replace("We are open.", "No idea"),
            "evals/conf.py": CONF.replace("Closed?", "Shut?"),
        }
    )

    ended = agentflow.ci_eval("run")

    assert ended.code == 1, ended
    report = json.loads(agentflow.read("report.json"))
    assert report["comparison"]["base_trials"] > 0
    assert not report["comparison"]["unconfirmed"]


CHANGED = "code evals/conf.py is part of this change"


@pytest.mark.parametrize(
    ("more", "told"),
    [("", []), ("# more\n", [f"criteria: their {CHANGED}, evalset shop: its {CHANGED}"])],
)
def test_a_change_of_the_code_is_told(agentflow: Shop, more: str, told: list[str]) -> None:
    repo = agentflow.repo()
    repo.commit()
    repo.on("change").commit(**{"evals/conf.py": CONF + more, "other.py": ""})

    assert agentflow.ci_eval("run").code == 0
    reasons = json.loads(agentflow.read("report.json"))["verdict"]["reasons"]
    weakened = [each["message"] for each in reasons if "weakens" in each["message"]]
    assert weakened == [f"this change weakens its own gate: {each}" for each in told]


# --- With any Python ------------------------------------------------------------------------

BOOM = """\
def build():
    raise ValueError('boom')

build()
"""


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        (
            BOOM,
            [
                "cannot load 'evals/conf.py': ValueError: boom",
                "  evals/conf.py:4: build()",
                "  evals/conf.py:2: raise ValueError('boom')",
            ],
        ),
        (
            "import agentflow.qa",
            [
                "cannot load 'evals/conf.py': ModuleNotFoundError: No module named 'agentflow'",
                "  evals/conf.py:1: import agentflow.qa",
                f"  (install it for {sys.executable}, or set `interpreter`)",
            ],
        ),
        (
            "import os\nprint('so far')\nos._exit(3)",
            ["the worker exited with code 3 while it started", "  so far"],
        ),
        (
            "x =",
            ["cannot load 'evals/conf.py': SyntaxError: invalid syntax", "  evals/conf.py:1: x ="],
        ),
        ("class EvalConfig: pass\nfound = EvalConfig()", [f"cannot load 'evals/conf.py': {NONE}"]),
    ],
)
def test_why_it_cannot_be_read_is_told(shop: Shop, conf: str, told: list[str]) -> None:
    shop.conf(conf)
    ended = shop.ci_eval("run")

    assert ended.code == 4
    first, *others = told
    assert problems(ended) == [
        "running evals/conf.py",
        f"ci-eval.yaml:5: criteria.from: {first}",
        *others,
    ]


@pytest.mark.parametrize("command", ["run", "plan", "validate"])
def test_a_missing_file_is_told_by_every_command(shop: Shop, command: str) -> None:
    shop.conf("")
    shop.configure("smoke.evalset.json", "evals/conv.py:CONFIG")

    ended = shop.ci_eval(command)
    assert ended.code == 4
    expected = "criteria.from: there is no file 'evals/conv.py'. Did you mean 'evals/conf.py'?"
    assert expected in ended.err


def test_an_evalset_is_told_where_the_configuration_names_it(shop: Shop) -> None:
    shop.conf(BOOM)
    shop.config(
        "agents: {bot: {python: 'shop:answer'}}\nevalsets: {shop: evals/conf.py}\n"
        "criteria: {response_match_score: 0.5}\n"
    )

    line = "ci-eval.yaml:2: evalsets.shop: cannot load 'evals/conf.py': ValueError: boom"
    assert line in shop.ci_eval("run").err


def test_it_gets_what_the_agent_gets_and_tells_no_secret(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_0123456789abcdefghij")
    monkeypatch.setenv("SHOP_CODE", "open-sesame-42")
    monkeypatch.setenv("OTHER_KEY", "not-for-agents")
    shop.conf("import os\nraise ValueError(sorted(os.environ), os.environ['SHOP_CODE'])")

    ended = shop.ci_eval("run")
    assert "'SHOP_CODE'" in ended.err
    assert "[SHOP_CODE]" in ended.err
    for hidden in ("GITHUB_TOKEN", "OTHER_KEY", "open-sesame-42"):
        assert hidden not in ended.err


def test_after_the_time_limit_it_is_killed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_link, "START_TIMEOUT_S", 0.2)
    shop.conf("import time\ntime.sleep(6000)")

    assert "criteria.from: the worker was not ready after 0.2 s" in shop.ci_eval("run").err


def test_what_it_starts_is_killed(shop: Shop) -> None:
    shop.conf(
        "import subprocess, sys\n"
        "asleep = [sys.executable, '-c', 'import time; time.sleep(6000)']\n"
        "open('pid', 'w').write(str(subprocess.Popen(asleep).pid))\n"
    )

    assert "it defines no EvalConfig" in shop.ci_eval("run").err
    assert _has_ended(int((shop.folder / "pid").read_text()))


def _has_ended(pid: int) -> bool:
    """Wait until a process has ended, for ever if it does not."""
    while True:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True


def test_commands_that_run_no_agent_read_the_rest(shop: Shop) -> None:
    shop.conf("open('ran', 'w')")
    more = "baseline: {store: file}\nmatrix: [{criteria: [rouge_match]}]"
    shop.configure("evals/conf.py", "evals/conf.py", more)

    assert shop.ci_eval("baseline", "show").code == 0
    assert not (shop.folder / "ran").exists()


def test_the_first_agent_of_agentflow_is_the_one_it_runs_as(shop: Shop) -> None:
    shop.conf("import os; raise ValueError(os.environ.get('WHO'))")
    agents: dict[str, Any] = {
        "replayed": {"recorded": "traces.jsonl"},
        "plain": {"python": "shop:answer", "env": {"WHO": "plain"}},
        "graph": {"agentflow": "shop:answer", "env": {"WHO": "graph"}},
    }
    config = {"evalsets": {"a": "smoke.evalset.json"}, "criteria": {"from": "evals/conf.py"}}
    for expected in ("graph", "plain"):
        shop.config(json.dumps({"agents": agents, **config}))
        assert f"ValueError: {expected}" in shop.ci_eval("run").err
        del agents[expected]
