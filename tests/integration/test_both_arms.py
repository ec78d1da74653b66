"""The change against its merge base in one job, by the command, with real agents and git."""

import json
import re
import shutil
import socket
import sys
import venv
from pathlib import Path

import pytest
from support.git_repositories import Repo, clone
from support.git_suites import CONFIG, YES, Suite, evalset
from support.slow_params import some


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path / "shop")


@pytest.mark.slow
def test_an_agent_that_answers_nothing_right_any_more_blocks(suite):
    suite.begin(5)
    ended = suite.change("def answer(message):\n    return 'no'\n")

    assert ended.code == 1
    assert "in the same job" in ended.out
    assert suite.base_run.is_file()
    assert suite.report()["comparison"]["base_trials"] > 0


@pytest.mark.slow
def test_the_only_case_of_a_suite_blocks_if_it_is_broken(suite):
    suite.begin(1)
    ended = suite.change("def answer(message):\n    return 'no'\n")

    assert ended.code == 1
    assert "'c0'" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize(("gate", "code"), [("{}", 1), ("{confirm: candidate}", 0)])
def test_the_only_score_that_fell_and_still_passes_does_not_end_as_passed(suite, gate, code):
    config = CONFIG.replace("0.8", "0.5") + f"gate: {gate}\n"
    suite.commit("agent", **{"bot.py": YES, "ci-eval.yaml": config, "evals/smoke.csv": evalset(2)})
    suite.ci_eval("run")
    suite.ci_eval("baseline", "save")
    suite.commit("baseline")
    suite.git("checkout", "--quiet", "-b", "change")
    ended = suite.change("def answer(text):\n    return 'yes sir' if '1' in text else 'yes'\n")

    assert ended.code == code
    assert ("FAILED" if code else "NOT DECIDED") in ended.out
    assert "('c1')" in ended.out


@pytest.mark.slow
def test_a_broken_case_that_is_run_alone_fails_as_in_the_whole_suite(suite):
    suite.begin(5)
    suite.commit(
        "break", **{"bot.py": "def answer(text):\n    return 'no' if '3' in text else 'yes'\n"}
    )

    ended = suite.ci_eval("run", "--case", "c3")

    assert (ended.code, "'c3'" in ended.out) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("gate", ["{mode: threshold, %s}", "{on_vanished: pass, %s}"])
def test_a_change_that_removes_what_blocks_it_may_fail_beside_a_stored_run(suite, gate):
    strict = CONFIG.replace("0.8}", "0.8, ci/exact_match: 1.0}")
    strict += f"gate: {gate % 'on_loosened: fail'}\n"
    suite.begin(**{"ci-eval.yaml": strict})
    suite.ci_eval("run")
    suite.ci_eval("baseline", "save")
    suite.commit("baseline")
    suite.git("checkout", "--quiet", "-B", "main")
    suite.git("checkout", "--quiet", "-b", "removes")
    less = strict.replace(", ci/exact_match: 1.0", "")
    suite.commit("less", **{"ci-eval.yaml": less, "evals/smoke.csv": evalset(3)})

    for command in ("run", "report"):
        ended = suite.ci_eval(command)
        assert ended.code == 1, ended.out
        assert "criterion ci/exact_match is removed" in ended.out
        assert "evalset smoke: 2 cases changed or removed" in ended.out


@pytest.mark.slow
def test_new_and_changed_cases_that_fail_are_named(suite):
    suite.begin(5)
    cases = (
        evalset(6)
        .replace("question 4,yes", "question 4,maybe")
        .replace("question 5,yes", "question 5,so")
    )
    suite.commit("cases", **{"evals/smoke.csv": cases})

    ended = suite.ci_eval("run")

    assert ended.code == 0
    assert "nothing to compare with, and below a threshold (does not block): c4, c5" in ended.out
    comment = (suite.folder / "ci-eval-report/comment.md").read_text()
    assert "c4, c5" in comment.partition("| Criterion")[0]


def test_one_broken_case_of_twenty_blocks_and_is_named(suite):
    suite.begin(20)
    ended = suite.change("def answer(text):\n    return 'no' if ' 7' in text else 'yes'\n")

    assert ended.code == 1
    assert "'c7'" in ended.out
    (change,) = [each for each in suite.report()["comparison"]["changes"] if each["case"] == "c7"]
    failed, tried = change["base"]
    assert (change["certain"], failed) == (True, 0)
    assert tried > 0
    difference = suite.ci_eval("baseline", "diff").out
    assert f"0 of {tried} with the merge base: proven" in difference


@pytest.mark.slow
def test_two_broken_cases_of_twenty_are_proven_without_trying_the_others_again(suite):
    suite.begin(20)
    ended = suite.change("def answer(text):\n    return 'no' if '7' in text else 'yes'\n")

    assert ended.code == 1
    assert suite.report()["comparison"]["rounds"] == 0
    comment = (suite.folder / "ci-eval-report/comment.md").read_text()
    assert "2 cases broke: `c7` (response) and 1 like it" in comment
    assert '{case: "c17", reason' in comment


def test_a_change_that_breaks_nothing_passes_and_draws_nothing(suite):
    suite.begin(20)
    ended = suite.change(YES + "# the same\n")

    assert ended.code == 0
    assert not suite.base_run.exists()


@pytest.mark.slow
def test_what_fails_with_the_merge_base_as_well_does_not_block_and_is_said(suite, tmp_path):
    fixture = tmp_path / "fixture"
    fixture.write_text("yes")
    code = f"def answer(message):\n    return open({str(fixture)!r}).read()\n"
    suite.begin(5, **{"bot.py": code})
    fixture.write_text("gone")
    ended = suite.change(code + "# the same\n")

    assert ended.code == 0
    assert "not caused by this change" in ended.out
    comparison = suite.report()["comparison"]
    assert comparison["base_trials"] > 0
    assert not any(each["certain"] for each in comparison["changes"])
    assert "flaked" not in ended.out
    comment = (suite.folder / "ci-eval-report/comment.md").read_text()
    assert "5 fail with the merge base, too (`c0`, `c1`, `c2`, …)" in comment
    assert "flaked" not in comment


READS = """\
from pathlib import Path


def answer(message):
    found = Path("data/word")
    return found.read_text() if found.is_file() else "mumbled"
"""


def in_submodule(suite: Suite, files: dict[str, str]) -> None:
    data = Repo(suite.folder.with_name("data"))
    data.commit("data", word="yes")
    allowed = ("-c", "protocol.file.allow=always")
    suite.git(*allowed, "submodule", "--quiet", "add", data.folder.as_uri(), "data")
    suite.begin(5, **files)


def not_tracked(suite: Suite, files: dict[str, str]) -> None:
    suite.write("data/word", "yes")
    suite.begin(5, **files, **{".gitignore": "ci-eval-report\n__pycache__\ndata/\n"})


@pytest.mark.slow
@pytest.mark.parametrize("placed", [in_submodule, not_tracked])
def test_data_that_is_in_no_commit_excuses_no_change(suite, placed):
    placed(suite, {"bot.py": READS})
    assert suite.change(READS + "# the same\n").code == 0

    ended = suite.change(READS.replace("found.read_text()", "'no'"))

    assert ended.code == 1, ended.out
    assert "with this change, 0 of 2 with the merge base" in ended.out
    again = "running the merge base again, with untracked files: data/"
    assert (again in ended.err) == (placed is not_tracked)


@pytest.mark.slow
@pytest.mark.parametrize("placed", [in_submodule, not_tracked])
def test_data_that_is_in_no_commit_is_not_needed_in_a_store(suite, placed):
    config = CONFIG.replace("store: file", "store: merge_base")
    placed(suite, {"bot.py": READS, "ci-eval.yaml": config})

    ended = suite.change(READS.replace("found.read_text()", "'no'"))

    assert ended.code == 1, ended.out
    assert "0 of 2 with the merge base" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "config", [{}, {"ci-eval.yaml": CONFIG.replace("store: file", "store: merge_base")}]
)
def test_data_without_which_the_merge_base_cannot_answer_is_copied_for_it(suite, config):
    code = "def answer(message):\n    return open('data/word').read()\n"
    not_tracked(suite, {"bot.py": code, **config})

    ended = suite.change(code.replace(".read()", ".read() and 'no'"))

    assert ended.code == 1, ended.out
    assert "the merge base was run with copies of untracked files: data/" in ended.out


@pytest.mark.slow
def test_data_that_the_merge_base_lacks_hide_no_case_that_a_change_broke(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    not_tracked(suite, {"bot.py": READS, "ci-eval.yaml": config})

    code = READS.replace("found.read_text()", "found.read_text() if '3' in message else 'no'")
    ended = suite.change(code)

    assert ended.code == 1, ended.out
    assert "the merge base was run with copies of untracked files: data/" in ended.out


@pytest.mark.slow
def test_files_that_may_be_built_from_the_change_excuse_nothing(suite):
    not_tracked(suite, {"bot.py": READS})
    suite.write("data/word", "no")  # as a step of the job would build it from the change

    ended = suite.change(READS + "# another word\n")

    assert ended.code == 6, ended.out
    assert "not caused by this change" not in ended.out
    assert "NOT DECIDED" in ended.out or "INCOMPLETE" in ended.out
    assert "copies of untracked files, which may be built from this change: data/" in ended.out


@pytest.mark.slow
def test_data_that_are_too_large_to_be_copied_leave_the_decision_to_stored_runs(suite):
    not_tracked(suite, {"bot.py": READS})
    with (suite.folder / "data/large").open("wb") as file:
        file.truncate(3 << 30)

    ended = suite.change(READS.replace("found.read_text()", "'no'"))

    assert ended.code == 1, ended.out
    assert "warning: data/ cannot be copied for the merge base: too many or too large" in ended.err
    assert "its work tree lacks untracked files: data/; let the agent's" in ended.out


@pytest.mark.slow
def test_the_merge_base_is_run_as_its_own_configuration_says(suite):
    suite.begin(5)
    wrong = "def answer(message):\n    return 'no'\n"
    suite.commit(
        **{"other.py": wrong, "ci-eval.yaml": CONFIG.replace("bot:answer", "other:answer")}
    )
    ended = suite.change("raise SystemExit('the module of the merge base is another')\n")

    assert ended.code == 1
    base = json.loads(suite.base_run.read_text())
    assert {each["status"] for each in base["results"]} == {"passed"}


@pytest.mark.slow
def test_a_merge_base_that_the_clone_lacks_is_named_and_the_change_is_judged_alone(suite, tmp_path):
    suite.begin(5)
    code = "def answer(text):\n    return 'no' if '3' in text else 'yes'\n"
    suite.commit("change", **{"bot.py": code})
    shallow = Suite(tmp_path / "shallow", branch="change")
    shallow.git("fetch", "--quiet", "--depth=1", f"file://{suite.folder}", "change")
    shallow.git("reset", "--quiet", "--hard", "FETCH_HEAD")
    parent = suite.git("rev-parse", "main")
    env = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_DIFF_BASE_SHA": parent}
    ended = shallow.ci_eval("run", **env)

    assert "weakens its own gate: perhaps, but what it changes is unknown: " in ended.out
    assert f"the clone lacks the merge base {parent[:7]}" in ended.out
    assert "fetch-depth: 0" in ended.out
    assert "it cannot be fetched: the clone has no remote" in ended.out
    assert not shallow.base_run.exists()
    for command in (("report",), ("gate", "explain", "ci-eval-report/run.json")):
        assert f"the clone lacks the merge base {parent[:7]}" in shallow.ci_eval(*command).out


@pytest.mark.slow
def test_a_clone_without_the_base_branch_cannot_tell_what_a_change_weakens(suite, tmp_path):
    suite.begin(3, **{"ci-eval.yaml": CONFIG + "gate: {on_loosened: fail}\n"})
    loose = CONFIG.replace("0.8", "0.1") + "gate: {mode: threshold}\n"
    suite.commit("loosen", **{"ci-eval.yaml": loose})
    suite.commit("goes on")
    suite.git("checkout", "--quiet", "main")
    folder, url = tmp_path / "only", suite.folder.as_uri()
    suite.git("clone", "--quiet", "--single-branch", "--branch=change", url, str(folder))
    only = Suite(folder)
    ended = only.ci_eval("run")

    unknown = "weakens its own gate: perhaps, but what it changes is unknown: no base branch"
    assert unknown in ended.out
    only.git("checkout", "--quiet", "--detach")
    assert unknown in only.ci_eval("run").out
    assert "unknown" not in only.ci_eval("run", GITHUB_REF_TYPE="tag").out


@pytest.mark.slow
@pytest.mark.parametrize("lacks", ["--depth=1", "--filter=blob:none", "--filter=tree:0"])
def test_a_merge_base_that_a_clone_lacks_is_fetched_without_touching_the_clone(
    suite, tmp_path, lacks
):
    suite.begin(5)
    suite.commit(
        "change", **{"bot.py": "def answer(text):\n    return 'no' if '3' in text else 'yes'\n"}
    )
    suite.git("config", "uploadpack.allowFilter", "true")
    clone(suite.folder, tmp_path / "clone", lacks, "--branch=change")
    own = Suite(tmp_path / "clone")
    parent = suite.git("rev-parse", "main")
    env = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_DIFF_BASE_SHA": parent}
    before = own.git("count-objects", "-v")

    ended = own.ci_eval("run", **env)

    assert f"fetching the merge base {parent[:7]}\n" in ended.err
    assert ended.code == 1, ended.out
    assert own.report()["comparison"]["base_trials"] > 0
    assert own.git("count-objects", "-v") == before
    assert own.git("cat-file", "-t", "HEAD") == "commit"


WITH_LIB = "import lib\ndef answer(message):\n    return lib.TEXT\n"


@pytest.mark.slow
def test_a_path_of_the_change_in_pythonpath_is_that_of_the_merge_base(suite):
    src = {"PYTHONPATH": str(suite.folder / "src")}
    suite.begin(5, env=src, **{"bot.py": WITH_LIB, "src/lib.py": "TEXT = 'yes'\n"})
    suite.commit("change", **{"src/lib.py": "TEXT = 'no'\n"})
    ended = suite.ci_eval("run", **src)

    assert ended.code == 1
    base = json.loads(suite.base_run.read_text())
    assert {each["status"] for each in base["results"]} == {"passed"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["[python3, {folder}/bot.py]", "[sh, -c, 'cd {folder} && exec python3 bot.py']"]
)
def test_an_agent_that_names_the_work_tree_of_the_change_is_not_taken_for_its_base(suite, command):
    agent = command.format(folder=suite.folder)
    config = CONFIG.replace('python: "bot:answer"', f"command: {agent}")
    config = config.replace("store: file", "store: merge_base")
    suite.begin(**{"ci-eval.yaml": config, "bot.py": LINES})
    ended = suite.change(LINES.replace("yes", "no"))

    assert "PASSED" not in ended.out
    assert f"'bot' names {suite.folder}" in ended.out
    assert "which has the code of the change" in ended.out


LINES = """\
import sys
for line in sys.stdin:
    print('"yes"', flush=True)
"""


@pytest.mark.slow
def test_a_server_on_a_fixed_port_is_not_taken_for_that_of_the_merge_base(suite):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = f'http: "http://127.0.0.1:{port}/chat", start: [{sys.executable}, bot.py, "{port}"]'
    config = CONFIG.replace('python: "bot:answer"', server)
    suite.begin(
        **{"ci-eval.yaml": config.replace("store: file", "store: merge_base"), "bot.py": SERVER}
    )
    ended = suite.change(SERVER.replace("yes", "no"))

    assert "PASSED" not in ended.out
    assert "a started one `{port}` in its address" in ended.out
    assert suite.ci_eval("plan").code == 0


SERVER = """\
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"response": "yes"}')

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.slow
def test_an_error_with_the_merge_base_hides_no_regression(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.begin(5, **{"ci-eval.yaml": config})
    agent = "def answer(text):\n    assert '3' not in text\n    return 'yes'\n"
    suite.git("checkout", "-q", "main")
    suite.commit("cannot answer", **{"bot.py": agent})
    suite.git("checkout", "-q", "-b", "later")
    broken = "def answer(text):\n    return 'no' if '3' in text else 'yes'\n"
    suite.commit("breaks", **{"bot.py": broken})

    ended = suite.ci_eval("run")

    assert ended.code == 6
    said = "errors may hide a regression of: 'c3' on smoke with bot (an error with the merge base)"
    assert said in ended.out
    assert "nothing to compare with" not in ended.out


@pytest.mark.slow
def test_a_case_with_other_content_than_in_the_merge_base_is_changed_and_not_new(suite):
    suite.begin(3, **{"ci-eval.yaml": CONFIG.replace("store: file", "store: merge_base")})
    cases = evalset(4).replace("question 1", "the question 1")
    suite.commit("cases", **{"evals/smoke.csv": cases})

    assert suite.ci_eval("run").code == 0
    comparison = suite.report()["comparison"]
    assert comparison["added"] == ["smoke/c3"]
    assert comparison["not_comparable"] == ["case smoke/c1: its content changed"]

    suite.commit("all", **{"evals/smoke.csv": evalset(3).replace("question", "the question")})
    ended = suite.ci_eval("run")
    assert (ended.code, "NOT DECIDED" in ended.out) == (0, True)
    assert "no agent can run any case that the merge base also has" in ended.out


@pytest.mark.slow
def test_a_change_does_not_escape_the_merge_base_by_touching_every_case(suite):
    gate = "gate: {on_inconclusive: fail, on_missing: pass}\n"
    config = CONFIG.replace("store: file", "store: merge_base") + gate
    suite.begin(3, **{"ci-eval.yaml": config})
    suite.commit("touch", **{"evals/smoke.csv": evalset(3).replace("question", "the question")})

    assert suite.change("def answer(message):\n    return 'no'\n").code == 1


@pytest.mark.slow
def test_drift_is_found_by_a_schedule_which_does_not_ask_the_merge_base(suite):
    model = suite.folder.parent / "model"
    model.write_text("yes")
    drifts = f"def answer(message):\n    return open({str(model)!r}).read()\n"
    suite.begin(5, **{"bot.py": drifts})
    suite.ci_eval("run")
    suite.ci_eval("baseline", "save")
    suite.commit("baseline")
    suite.git("checkout", "--quiet", "-B", "main")
    model.write_text("no")

    by_schedule = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "schedule"}
    ended = suite.ci_eval("run", **by_schedule)

    assert ended.code == 1, ended.out
    assert "this run has no change" in ended.out
    assert not suite.base_run.exists()
    assert suite.ci_eval("report", **by_schedule).code == 1
    assert suite.ci_eval("report").code == 1, "nor elsewhere"


@pytest.mark.slow
def test_without_stored_runs_thresholds_decide_what_a_schedule_runs(suite):
    suite.begin(5, **{"ci-eval.yaml": CONFIG.replace("store: file", "store: merge_base")})
    suite.commit("bad", **{"bot.py": "def answer(message):\n    return 'no'\n"})
    suite.git("checkout", "--quiet", "-B", "main")
    suite.commit("more", README="words")

    ended = suite.ci_eval("run", GITHUB_ACTIONS="true", GITHUB_EVENT_NAME="schedule")

    assert ended.code == 1, ended.out
    assert "nothing to compare with" in ended.out


@pytest.mark.slow
def test_a_run_that_stops_early_is_compared_with_the_merge_base_all_the_same(suite):
    broken = "def answer(text):\n    return 'no' if text[-2:] in ('39',) else 'yes'\n"
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.begin(40, **{"ci-eval.yaml": config, "bot.py": broken})
    suite.commit("nothing changes", **{"bot.py": f"{broken}# the same\n"})

    ended = suite.ci_eval("run", "-x")  # only the last case fails

    assert ended.code == 0
    assert "PASSED, for the part of the suite that was run" in ended.out
    suite.commit("the first fails, too", **{"bot.py": broken.replace("('39',)", "('39', ' 0')")})
    ended = suite.ci_eval("run", "-x")
    assert ended.code == 6
    assert re.search(r"stopped after \d+ trials?, because of --maxfail", ended.out)
    assert "c0" in ended.out


@pytest.mark.parametrize(
    ("event", "state", "code"),
    [
        ("pull_request_target", "open", 4),
        ("pull_request_target", "closed", 0),  # it was merged
        ("pull_request", "open", 0),  # somebody asked for it
    ],
)
def test_the_target_branch_is_not_evaluated_as_the_change(suite, event, state, code):
    suite.begin(5)
    suite.commit("bad", **{"bot.py": "def answer(message):\n    return 'no'\n"})
    suite.git("checkout", "--quiet", "main")
    tip = suite.git("rev-parse", "HEAD").strip()
    payload = {"pull_request": {"state": state, "number": 1, "base": {"sha": tip}}}
    path = suite.folder.parent / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    env = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": event, "GITHUB_SHA": tip}

    ended = suite.ci_eval("run", **env, GITHUB_EVENT_PATH=str(path))

    assert ended.code == code, ended
    assert ("the target branch is checked out, not the pull request" in ended.err) is (code == 4)


@pytest.mark.slow
def test_a_change_cannot_choose_the_commit_that_it_is_compared_with(suite):
    """Its first commit breaks the agent, its second one names a branch with the first as base."""
    suite.begin(5)
    broken = "def answer(text):\n    return 'no' if '3' in text else 'yes'\n"
    suite.commit("breaks", **{"bot.py": broken})
    suite.git("branch", "evil")
    config = CONFIG.replace("store: file", "store: file, base: evil")
    suite.commit("hides it", **{"ci-eval.yaml": config})
    ended = suite.ci_eval("run", GITHUB_BASE_REF="main", GITHUB_EVENT_NAME="pull_request")

    assert ended.code == 1
    assert "'c3'" in ended.out
    assert "baseline: location changed" in ended.out


LATE = "def answer(message):\n    import lib\n    return lib.TEXT\n"
PROGRAM = (
    LATE
    + """
import json, sys

for line in sys.stdin:
    print(json.dumps({"response": answer(line)}), flush=True)
"""
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "code"),
    some(
        [
            ('python: "bot:answer", interpreter: PYTHON', WITH_LIB),
            ('python: "bot:answer", interpreter: PYTHON', LATE),
            ("command: [PYTHON, bot.py]", PROGRAM),
        ],
        1,
    ),
    ids=["when it is loaded", "when it is called", "by a command"],
)
def test_code_that_was_installed_from_the_change_does_not_stand_for_the_merge_base(
    suite, agent, code
):
    """As by `pip install --editable .` in an earlier step of the job."""
    environment = suite.folder.with_name("environment")
    venv.create(environment, with_pip=False)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "editable.pth").write_text(f"{suite.folder / 'src'}\n")
    python = str(environment / "bin/python")
    config = CONFIG.replace('python: "bot:answer"', agent.replace("PYTHON", python))
    suite.begin(5, **{"bot.py": code, "src/lib.py": "TEXT = 'yes'\n", "ci-eval.yaml": config})
    assert suite.ci_eval("run").code == 0
    assert suite.ci_eval("baseline", "save").code == 0
    suite.commit("change", **{"src/lib.py": "TEXT = 'no'\n"})
    ended = suite.ci_eval("run")

    assert "not compared with the merge base" in ended.out
    assert "lib belongs to the work tree of the change" in ended.out
    # The stored run decides instead, with more trials of the change.
    assert ended.code == 1


LIB_IN_VENV = CONFIG.replace('"bot:answer"', '"bot:answer", interpreter: .venv/bin/python')


@pytest.fixture
def packages(suite):
    """The packages of a virtual environment that an earlier step made, and git ignores."""
    venv.create(suite.folder / ".venv", with_pip=False)
    (found,) = suite.folder.glob(".venv/lib/python*/site-packages")
    (found / "dep.py").write_text("TEXT = 'yes'\n")
    return found


USES_DEP = "import dep\ndef answer(message):\n    return dep.TEXT\n"
BREAKS = "import dep\ndef answer(message):\n    return 'no' if '3' in message else dep.TEXT\n"


def begin_in_venv(suite, **files):
    files = {"bot.py": USES_DEP, ".gitignore": ".venv\n", "ci-eval.yaml": LIB_IN_VENV, **files}
    suite.begin(5, **files)
    assert suite.ci_eval("run").code == 0
    assert suite.ci_eval("baseline", "save").code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
def test_an_environment_that_git_ignores_is_that_of_both(suite):
    begin_in_venv(suite, **{"requirements.txt": "dep\n"})
    ended = suite.change(BREAKS)

    assert ended.code == 1
    assert "passes with the merge base in the same job ('c3')" in ended.out


DEPENDENCIES = (
    *("requirements.txt", "agents/shop/requirements-dev.txt", "requirements/base.txt"),
    *("uv.lock", ".github/workflows/evaluate.yml"),
)


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
def test_an_environment_of_other_dependencies_is_not_that_of_the_merge_base(suite):
    begin_in_venv(suite, **dict.fromkeys(DEPENDENCIES, "dep\n"))
    begun = suite.commit("baseline")
    for file in DEPENDENCIES:
        suite.git("reset", "--quiet", "--hard", begun)
        suite.commit("more", **{file: "dep\nother\n"})
        ended = suite.change(BREAKS)

        assert f"{file} differs, so .venv may not fit the merge base; create" in ended.out


@pytest.mark.slow
def test_code_in_development_mode_is_that_of_each_arm(suite, packages):
    (packages / "editable.pth").write_text(f"{suite.folder / 'src'}\n")
    begin_in_venv(suite, **{"bot.py": WITH_LIB, "src/lib.py": "TEXT = 'yes'\n"})
    suite.commit("change", **{"src/lib.py": "TEXT = 'no'\n"})
    ended = suite.ci_eval("run")

    assert ended.code == 1
    base = json.loads(suite.base_run.read_text())
    assert {each["status"] for each in base["results"]} == {"passed"}


@pytest.mark.slow
def test_a_copy_of_the_change_does_not_stand_for_the_merge_base(suite, packages):
    """As by `pip install .`, with the code in `src`."""
    (packages / "lib.py").write_text("TEXT = 'yes'\n")
    (packages / "lib-1.dist-info").mkdir()
    url = {"url": suite.folder.as_uri(), "dir_info": {}}
    (packages / "lib-1.dist-info/direct_url.json").write_text(json.dumps(url))
    begin_in_venv(suite, **{"bot.py": WITH_LIB, "src/lib.py": "TEXT = 'yes'\n"})
    (packages / "lib.py").write_text("TEXT = 'no'\n")
    suite.commit("change", **{"src/lib.py": "TEXT = 'no'\n"})
    ended = suite.ci_eval("run")

    assert "the change is installed in .venv, so both arms would run it" in ended.out
    assert ended.code == 1


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
def test_an_environment_that_the_change_committed_is_not_that_of_the_merge_base(suite):
    begin_in_venv(suite)
    suite.git("add", "--force", ".venv/pyvenv.cfg")
    suite.commit("its own environment")
    ended = suite.change(BREAKS)

    assert "there is no program '.venv/bin/python'" in ended.out


def test_without_stored_runs_the_first_pull_request_is_compared(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.begin(20, **{"ci-eval.yaml": config})
    same = suite.change(YES + "# the same\n")
    assert same.code == 0
    assert suite.report()["comparison"]["base_trials"] == 20

    worse = suite.change("def answer(text):\n    return 'no' if '7' in text else 'yes'\n")
    assert worse.code == 1
    assert "'c7'" in worse.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "gate",
    some(
        [
            "on_inconclusive: fail",
            "on_inconclusive: warn",
            "on_inconclusive: pass",
            "confirm: candidate",
            "confirm: off",
        ],
        1,
    ),
)
def test_without_stored_runs_no_setting_skips_the_comparison(suite, gate):
    config = CONFIG.replace("store: file", "store: merge_base").replace("0.8", "0.3")
    suite.begin(10, **{"ci-eval.yaml": f"{config}gate: {{{gate}}}\n"})
    ended = suite.change("def answer(message):\n    return 'no no yes'\n")

    assert ended.code == 1, ended.out
    assert "worse than the merge base in the same job" in ended.out


@pytest.mark.slow
def test_without_stored_runs_a_timeout_of_the_change_does_not_stop_the_merge_base(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    slow = "import time\n\ndef answer(message):\n    time.sleep(0.5)\n    return 'yes'\n"
    suite.begin(3, **{"ci-eval.yaml": config, "bot.py": slow})
    quick = config.replace("concurrency: 2", "concurrency: 2, timeout_s: 0.3")
    suite.commit("quick", **{"ci-eval.yaml": quick})

    assert suite.change(YES).code == 0
    assert suite.report()["comparison"]["base_trials"] == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "gone"),
    some(
        [
            ("agents: {bot:", "agents: {robot:", "agent 'bot'"),
            ("evalsets: {smoke:", "evalsets: {other:", "evalset 'smoke'"),
            (
                "{response_match_score: 0.8}",
                "{rouge: {use: response_match_score, threshold: 0.8}}",
                "criterion 'response_match_score'",
            ),
        ],
        1,
    ),
)
def test_what_a_change_renames_blocks_without_stored_runs_too(suite, old, new, gone):
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.begin(3, **{"ci-eval.yaml": config})
    suite.commit("rename", **{"ci-eval.yaml": config.replace(old, new)})
    ended = suite.change(YES)

    assert ended.code == 1, ended.out
    assert f"in the baseline but not in this run: {gone}" in ended.out


@pytest.mark.slow
def test_cases_that_a_change_renames_all_block_without_stored_runs_too(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.begin(3, **{"ci-eval.yaml": config})
    suite.commit("rename", **{"evals/smoke.csv": evalset(3).replace("\nc", "\nd")})
    ended = suite.change(YES)

    assert ended.code == 1, ended.out
    assert "in the baseline but not in this run: case 'c0' on smoke" in ended.out


@pytest.mark.slow
def test_a_case_that_a_change_removes_or_renames_blocks_without_stored_runs_too(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.begin(5, **{"ci-eval.yaml": config})
    cases = evalset(5).replace("c3,", "renamed,")
    suite.commit("rename", **{"evals/smoke.csv": cases})
    ended = suite.change("def answer(text):\n    return 'no' if '3' in text else 'yes'\n")

    assert ended.code == 1
    assert "in the baseline but not in this run: case 'c3' on smoke" in ended.out
    assert suite.ci_eval("report", "ci-eval-report").code == 1
    assert suite.ci_eval("run", "--case", "c1").code == 0


@pytest.mark.slow
def test_a_file_of_cases_that_a_change_renames_blocks_without_stored_runs_too(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    config = config.replace("evals/smoke.csv", '"evals/*.csv"')
    suite.begin(5, **{"ci-eval.yaml": config, "evals/more.csv": evalset(3)})
    suite.git("mv", "evals/more.csv", "evals/other.csv")
    ended = suite.change("def answer(text):\n    return 'yes'\n")

    assert ended.code == 1
    assert "in the baseline but not in this run: evalset 'smoke:evals.more.csv'" in ended.out
    assert "weakens its own gate: evalset smoke: evals/more.csv is removed" in ended.out


@pytest.mark.slow
def test_a_blocking_measure_that_is_no_longer_measured_has_vanished(suite):
    config = CONFIG.replace("store: file", "store: merge_base").replace(
        "0.8}", "0.8, ci/tokens: {max_growth: 0.2, tier: block}}"
    )
    usage = "{'input_tokens': 5, 'output_tokens': 5}"
    uses = f"def answer(text):\n    return {{'response': 'yes', 'usage': {usage}}}\n"
    suite.begin(5, **{"ci-eval.yaml": config, "bot.py": uses})
    ended = suite.change(YES)

    assert ended.code == 1, ended.out
    assert "in the baseline but not in this run: criterion 'ci/tokens'" in ended.out


@pytest.mark.slow
def test_no_template_of_a_change_leaves_out_that_it_weakens_its_gate(suite):
    suite.begin(5)
    config = CONFIG.replace("0.8", "0.1") + "reports: [{markdown: {template: mine.md.j2}}]\n"
    suite.commit("mine", **{"ci-eval.yaml": config, "mine.md.j2": "All is well."})
    suite.ci_eval("run")

    comment = (suite.folder / "ci-eval-report/comment.md").read_text()
    head, _, rest = comment.partition("All is well.")
    assert "this change weakens its own gate: threshold of" in head
    assert not rest.strip()


@pytest.mark.slow
def test_what_is_not_ours_in_the_output_folder_stays(suite):
    suite.begin(3)
    mine = suite.folder / "out/base/mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("kept")
    suite.commit("change", **{"bot.py": "def answer(text):\n    return 'no'\n"})

    for _ in range(2):
        assert suite.ci_eval("run", "--out", "out").code == 1
        assert mine.read_text() == "kept"
    assert (suite.folder / "out/base/run.json").is_file()


@pytest.mark.slow
def test_a_branch_that_shares_no_commit_with_the_base_is_not_decided(suite):
    suite.begin(3, **{"ci-eval.yaml": CONFIG.replace("store: file", "store: merge_base")})
    suite.git("checkout", "--quiet", "--orphan", "other")
    suite.commit("another beginning", **{"bot.py": "def answer(text):\n    return 'yes' + ''\n"})

    ended = suite.ci_eval("run")

    assert "NOT DECIDED" in ended.out
    assert "this branch shares no commit with 'main'" in ended.out


@pytest.mark.slow
def test_a_run_without_the_results_of_its_merge_base_is_not_decided(suite):
    suite.begin(5, **{"ci-eval.yaml": CONFIG.replace("store: file", "store: merge_base")})
    suite.commit("change", **{"bot.py": "def answer(text):\n    return 'yes '\n"})
    assert suite.ci_eval("run").code == 0
    (suite.folder / "moved").mkdir()
    shutil.copy(suite.folder / "ci-eval-report/run.json", suite.folder / "moved")

    for command in (("report", "moved", "--out", "again"), ("gate", "explain", "moved")):
        ended = suite.ci_eval(*command)
        assert "NOT DECIDED" in ended.out
        assert "moved/base/run.json is missing" in ended.out


@pytest.mark.slow
def test_a_store_of_nothing_gives_advice_that_leads_somewhere(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.commit("agent", **{"bot.py": YES, "evals/smoke.csv": evalset(3), "ci-eval.yaml": config})
    first = suite.ci_eval("run")
    said = "the merge base: there is no earlier commit yet; later commits will be compared\n"
    assert said in first.out

    suite.git("rm", "--quiet", "--cached", "ci-eval.yaml")
    suite.commit("no configuration", **{".gitignore": "ci-eval.yaml"})
    suite.git("checkout", "--quiet", "-b", "change")
    suite.commit("adds it", **{".gitignore": "ci-eval-report"})
    adds = suite.ci_eval("run")
    assert "; changes are compared once it is merged, so if this change moves it, " in adds.out
    assert "nothing to compare with: judged by thresholds alone" in adds.out

    power = suite.ci_eval("gate", "power")
    assert power.code == 4
    assert "the store 'merge_base' keeps no runs" in power.err
    shown = suite.ci_eval("baseline", "show")
    assert "each run also runs the merge base instead" in shown.out
    assert "--baseline-save" not in shown.out + power.err


@pytest.mark.slow
def test_power_counts_on_the_merge_base_where_it_can_be_run(suite):
    suite.begin(5)
    suite.ci_eval("run")
    suite.ci_eval("baseline", "save")
    told = "in doubt, it is compared with the merge base, which is run in the same job"

    power = suite.ci_eval("gate", "power")
    assert told in power.out
    assert "trials that all fail, if as many pass with the merge base" in power.out
    for setting in ("confirm: candidate", "on_inconclusive: warn", "rerun_budget: 1"):
        suite.write("ci-eval.yaml", CONFIG + f"gate: {{{setting}}}\n")
        power = suite.ci_eval("gate", "power")
        assert (power.code, told in power.out) == (0, False)


@pytest.mark.slow
def test_a_store_of_nothing_says_why_there_is_nothing_to_compare_with(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.begin(5, **{"bot.py": "raise SystemExit('not ready')\n", "ci-eval.yaml": config})
    ended = suite.change(YES)

    assert "not compared with the merge base" in ended.out
    assert "not ready" in ended.out
    assert "nothing to compare with: judged by thresholds alone" in ended.out
    assert "NOT DECIDED" in ended.out
    assert ended.code == 0
    comment = (suite.folder / "ci-eval-report/comment.md").read_text()
    assert "Nothing to compare with: the merge base could not be run." in comment

    suite.commit("strict", **{"ci-eval.yaml": f"{config}gate: {{on_inconclusive: fail}}\n"})
    assert suite.ci_eval("run").code == 1


@pytest.mark.slow
def test_an_agent_that_fails_with_the_merge_base_is_not_passed_beside_another(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    agents = '{bot: {python: "bot:answer"}, other: {python: "other:answer"}}'
    config = config.replace('{bot: {python: "bot:answer"}}', agents)
    raises = "def answer(message):\n    raise RuntimeError('boom')\n"
    suite.begin(2, **{"bot.py": raises, "other.py": YES, "ci-eval.yaml": config})
    ended = suite.change("def answer(text):\n    return 'no' if '1' in text else 'yes'\n")

    assert "NOT DECIDED: to decide it, make the merge base run" in ended.out
    assert "not compared with the merge base: RuntimeError: boom" in ended.out


@pytest.mark.slow
def test_a_removed_case_does_not_hide_that_the_merge_base_failed(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    config += "gate: {on_vanished: warn, on_inconclusive: fail}\n"
    raises = "def answer(message):\n    raise RuntimeError('boom')\n"
    suite.begin(3, **{"bot.py": raises, "ci-eval.yaml": config})
    suite.commit("remove", **{"evals/smoke.csv": evalset(2)})

    assert suite.change(YES).code == 1


@pytest.mark.slow
def test_a_new_case_alone_is_judged_by_its_threshold(suite):
    config = CONFIG.replace("store: file", "store: merge_base")
    suite.begin(2, **{"ci-eval.yaml": config + "gate: {on_inconclusive: fail}\n"})
    suite.commit("add", **{"evals/smoke.csv": evalset(3)})

    assert suite.ci_eval("run", "--case", "c2").code == 0


@pytest.mark.slow
def test_while_nothing_is_stored_thresholds_decide_and_the_merge_base_is_not_run(suite):
    suite.begin(5, **{"ci-eval.yaml": CONFIG})
    ended = suite.change("def answer(message):\n    return 'no'\n")

    assert ended.code == 1
    assert "no baseline yet: judged by thresholds alone" in ended.out
    assert not suite.base_run.exists()


@pytest.mark.slow
def test_a_resumed_run_tries_nothing_again_in_either_arm(suite):
    log = suite.folder / "log"
    code = f"def answer(text):\n    open({str(log)!r}, 'a').write('x')\n    return "
    suite.begin(5, **{"bot.py": code + "'yes'\n"})
    first = suite.change(code + "'no' if '3' in text else 'yes'\n")
    tried = len(log.read_text())
    again = suite.ci_eval("run", "--resume")

    assert first.code == again.code == 1
    assert suite.report()["comparison"]["base_trials"] > 0
    assert len(log.read_text()) == tried


@pytest.mark.slow
def test_a_stored_run_is_judged_again_with_both_of_its_arms(suite):
    suite.begin(5)
    suite.change("def answer(text):\n    return 'no' if '3' in text else 'yes'\n")
    first = suite.report()
    again = suite.ci_eval("report", "ci-eval-report", "--out", "ci-eval-report")

    assert again.code == 1
    assert suite.report()["comparison"]["changes"] == first["comparison"]["changes"]


@pytest.mark.slow
def test_a_stored_run_is_judged_by_its_own_commit_whatever_is_checked_out(suite):
    config = CONFIG.replace("store: file", "store: branch")
    fails = "def answer(text):\n    return 'no'\n"
    suite.begin(5, **{"ci-eval.yaml": config, "bot.py": fails})
    suite.git("checkout", "--quiet", "main")
    for code in (fails, YES):
        suite.commit("agent", **{"bot.py": code})
        suite.ci_eval("run")
        assert suite.ci_eval("baseline", "save").code == 0
    suite.git("checkout", "--quiet", "-B", "change")
    first = suite.change(fails)
    suite.git("checkout", "--quiet", "main")  # whose nearest stored run is that of its parent

    again = suite.ci_eval("report")

    assert (first.code, again.code) == (1, 1)
    assert again.out == first.out


@pytest.mark.slow
def test_where_no_case_can_be_compared_those_below_a_threshold_are_shown_to_block(suite):
    suite.begin(3)
    suite.commit("other cases", **{"evals/smoke.csv": "id,prompt,expected\nnew,new question,yes\n"})

    ended = suite.change("def answer(message):\n    return 'no'\n")

    assert ended.code == 1
    assert ended.out.startswith("FAILED new  evals/smoke.csv:2\n")
    for name in ("comment.md", "junit.xml", "summary.md"):
        text = (suite.folder / "ci-eval-report" / name).read_text()
        assert "does not block" not in text
        assert "\N{WHITE HEAVY CHECK MARK}" not in text


@pytest.mark.slow
def test_a_run_says_if_it_is_of_a_part_of_the_suite_or_of_uncommitted_changes(suite):
    suite.begin(3)
    whole = suite.ci_eval("run")
    comment = suite.folder / "ci-eval-report/comment.md"
    assert whole.out.startswith("\N{HEAVY CHECK MARK} PASSED\n")
    assert "uncommitted" not in comment.read_text()

    (suite.folder / "bot.py").write_text(YES + "# changed\n")
    part = suite.ci_eval("run", "--case", "c1")

    verdict = part.out.partition("\n")[0]
    assert verdict == "\N{HEAVY CHECK MARK} PASSED, for the part of the suite that was run"
    assert ">Passed</strong>, for the part of the suite that was run" in (
        (suite.folder / "ci-eval-report/report.html")
        .read_text()
        .replace("\N{HEAVY CHECK MARK} ", "")
    )
    assert " passed, for the part of the suite that was run:** " in comment.read_text()
    assert " with uncommitted changes</sub>" in comment.read_text()


@pytest.mark.slow
def test_a_change_that_undoes_a_fix_of_one_case_blocks_and_names_it(suite):
    broken = "def answer(text):\n    return 'no' if '3' in text else 'yes'\n"
    lower = CONFIG + "gate: {mode: regression}\n"
    suite.commit(
        "agent", **{"bot.py": broken, "ci-eval.yaml": lower, "evals/smoke.csv": evalset(10)}
    )
    for code in (broken, YES):
        suite.commit("agent", **{"bot.py": code + "# as before\n"})
        suite.ci_eval("run")
        suite.ci_eval("baseline", "save")
        suite.commit("baseline")
    suite.git("checkout", "--quiet", "-b", "change")
    ended = suite.change(broken)

    assert ended.code == 1, ended.out
    assert "'c3'" in ended.out
