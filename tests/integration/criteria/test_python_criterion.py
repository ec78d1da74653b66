"""A function of the user's scores trials from a worker, where all that it can do wrong stays."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.agent_sessions import LONG_S, Place, dies, passing
from support.project import REFUNDS, case, turn

from ci_eval.criteria.ci_python import Python, _Function
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.errors import DisturbedError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run.score import MAX_EVIDENCE_CHARS, MAX_EVIDENCE_ITEMS, score
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers import worker_link
from ci_eval.runtime.workers.worker_pool import Pool

ENV = ["COVERAGE_*"]
"""So that what runs in workers is measured, too."""
EXPECTED = 'expected true, false, a number from 0 to 1, None, or {"score", "reason"?, "evidence"?}'


def trial(name: str, **more: Any) -> Trial:
    expected = EvalCase.model_validate({**REFUNDS, "eval_id": name, **more})
    return Trial(TrialKey(agent="bot", evalset="e", case=name), expected, "f")


def trace(name: str, done: dict[str, Any] = REFUNDS, **more: Any) -> Trace:
    key = TrialKey(agent="bot", evalset="e", case=name)
    return Trace.model_validate({"key": key, "invocations": done["conversation"], **more})


def criterion(place: Place, code: str, **options: Any) -> Python:
    """Write the module `checks` and return the criterion of its function `check`."""
    place.write("checks.py", code)
    return Python.model_validate({"python": "checks:check", "env": ENV, **options})


def scores(
    place: Place, code: str, *names: str, done: dict[str, Any] = REFUNDS, **options: Any
) -> list[Score]:
    """Score the trials `names` all at once."""
    found = criterion(place, code, **options)

    async def main() -> list[Score]:
        async with found.start(place.context) as scorer:
            results = await asyncio.gather(
                *(
                    score(trial(name), trace(name, done), {"mine": found}, {"mine": scorer})
                    for name in names
                )
            )
        return [result.scores[0] for result in results]

    return asyncio.run(main())


def scored(place: Place, code: str, **options: Any) -> Score:
    [found] = scores(place, code, "refunds", **options)
    return found


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("words/__init__.py", "the code of 'checks' changed during the run; agents must not write"),
        ("lib/letters.py", "the code of 'checks' changed during the run; agents must not write"),
        ("others.py", ""),
    ],
)
def test_code_that_an_agent_writes_judges_nothing(place: Place, written: str, reason: str) -> None:
    (place.root / "lib").mkdir()
    place.write("lib/letters.py", "def same(one, other):\n    return one == other\n")
    place.write("words.py", "from letters import same\n")
    code = "from words import same\ndef check(it):\n    return same(1, 2)\n"
    found = criterion(place, code, env={"PYTHONPATH": "lib"})

    async def main() -> Score:
        async with found.start(place.context) as scorer:
            (place.root / "words").mkdir()
            place.write(written, "def same(*_):\n    return True\n")
            done, criteria = trace("refunds"), {"mine": found}
            result = await score(trial("refunds"), done, criteria, {"mine": scorer})
        return result.scores[0]

    got = asyncio.run(main())
    assert (got.status is Status.ERROR, got.reason.startswith(reason)) == (bool(reason), True)
    assert got.value == (None if reason else 0.0)


# --- What it returns --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "value", "status", "reason"),
    [
        ("True", 1.0, Status.PASSED, ""),
        ("False", 0.0, Status.FAILED, ""),
        ("1", 1.0, Status.PASSED, ""),
        ("0.75", 0.75, Status.PASSED, ""),
        ("0.7", 0.7, Status.FAILED, ""),
        ("0", 0.0, Status.FAILED, ""),
        ("{'score': True}", 1.0, Status.PASSED, ""),
        ("{'score': 0.5, 'reason': 'rude'}", 0.5, Status.FAILED, "rude"),
        ("{'score': 1, 'reason': 'kind', 'evidence': None}", 1.0, Status.PASSED, "kind"),
        ("None", None, Status.SKIPPED, "checks:check returned no score: does not apply"),
        ("{'score': None, 'reason': 'no order'}", None, Status.SKIPPED, "no order"),
    ],
)
def test_what_it_returns_is_the_score(
    place: Place, returned: str, value: float | None, status: Status, reason: str
) -> None:
    found = scored(place, f"def check(trial): return {returned}", threshold=0.75)
    assert (found.value, found.status, found.reason) == (value, status, reason)
    assert (found.criterion, found.name) == ("ci/python", "mine")


def test_it_may_be_async(place: Place) -> None:
    code = """
        import asyncio
        async def check(trial):
            await asyncio.sleep(0.01)
            return {"score": 0.5, "reason": "rude"}
    """
    found = scored(place, code)
    assert (found.value, found.status, found.reason) == (0.5, Status.FAILED, "rude")


def test_evidence_is_kept_where_the_score_did_not_pass(place: Place) -> None:
    code = "def check(trial): return {'score': 0.5, 'evidence': {'words': ['rude', 1]}}"
    assert scored(place, code).evidence == {"words": ["rude", 1]}
    assert scored(place, code, threshold=0.5).evidence is None


def test_evidence_and_reason_are_bounded(place: Place) -> None:
    code = """
        def check(trial):
            evidence = {"text": "x" * 100_000, "many": list(range(50_000)), "y" * 9_000: 1}
            return {"score": 0, "reason": "z" * 1_000_000, "evidence": evidence}
    """
    found = scored(place, code)
    assert found.evidence is not None
    text, many, key = found.evidence["text"], found.evidence["many"], list(found.evidence)[2]
    assert len(text) < MAX_EVIDENCE_CHARS + 100
    assert "96000 characters left out" in text
    assert many[:3] == [0, 1, 2]
    assert len(many) == MAX_EVIDENCE_ITEMS + 1
    assert many[-1] == "[…49000 more left out…]"
    assert len(key) < MAX_EVIDENCE_CHARS + 100
    assert len(found.reason) < MAX_EVIDENCE_CHARS + 100


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("2", "2: score: must be at most 1, found 2"),
        ("-0.1", "-0.1: score: must be at least 0, found -0.1"),
        ("'yes'", "'yes': score: expected a number, found 'yes'"),
        ("[1]", "[1]: score: expected a number, found a list"),
        ("{}", "{}: 'score' is missing"),
        ("{'scor': 1}", "{'scor': 1}: scor: unknown key. Did you mean 'score'?"),
        ("{'score': 1, 'value': 1}", "{'score': 1, 'value': 1}: value: unknown key"),
        ("{'score': 1, 'evidence': 'x'}", "evidence: expected an object, found 'x'"),
        ("{'score': 1, 'reason': 5}", "reason: expected text, found 5"),
        ("float('nan')", "float: nan, which is not JSON"),
        ("float('inf')", "float: inf, which is not JSON"),
        ("object()", "which is not JSON"),
        ("{1, 2}", "set: {1, 2}, which is not JSON"),
        ("'x' * 17_000_000", "the limit is 16 MiB"),
    ],
)
def test_anything_else_is_an_error_that_says_what_was_expected(
    place: Place, returned: str, said: str
) -> None:
    found = scored(place, f"def check(trial): return {returned}")
    assert (found.status, found.value) == (Status.ERROR, None)
    assert found.reason.startswith("checks:check returned ")
    assert said in found.reason
    assert found.reason.endswith(f"; {EXPECTED}")
    assert len(found.reason) < 700


# --- What it is told --------------------------------------------------------------------------

TELLS = """
    import json
    def check(trial):
        json.dump(trial, open("told.json", "w"))
        return True
"""


def told(place: Place, done: dict[str, Any], **more: Any) -> Any:
    import json

    async def main() -> None:
        found = criterion(place, TELLS)
        async with found.start(place.context) as scorer:
            expected = trial("refunds", **more.pop("case", {})).case
            await scorer.score(expected, trace("refunds", done, **more))

    asyncio.run(main())
    return json.loads((place.root / "told.json").read_text())


def test_it_is_told_what_was_expected_and_what_was_done(place: Place) -> None:
    two = case(
        "refunds",
        turn("Refund 7", "Sure?", ("look", {"order": 7})),
        turn("Yes", "Done.", ("refund", {"order": 7})),
    )
    found = told(place, two, duration_s=1.5, final_state={"refunded": True})
    assert found["response"] == "Done."
    assert found["expected_response"] == "Order 7 is refunded."
    look, refund = (
        {"name": name, "args": {"order": 7}, "result": None} for name in ("look", "refund")
    )
    assert found["tool_calls"] == [look, refund]
    assert found["expected_tool_calls"] == [refund]
    assert found["invocations"] == [
        {
            "message": "Refund 7",
            "response": "Sure?",
            "expected_response": "Order 7 is refunded.",
            "tool_calls": [look],
            "expected_tool_calls": [refund],
        },
        {
            "message": "Yes",
            "response": "Done.",
            "expected_response": None,
            "tool_calls": [refund],
            "expected_tool_calls": [],
        },
    ]
    assert (found["final_state"], found["duration_s"]) == ({"refunded": True}, 1.5)
    assert found["case"]["eval_id"] == "refunds"
    assert EvalCase.model_validate(found["case"]).conversation == trial("refunds").case.conversation


def test_of_a_scenario_and_of_an_empty_conversation_it_is_told_what_there_is(place: Place) -> None:
    plot = {"starting_prompt": "Hi", "conversation_plan": "Be kind."}
    scenario = {"conversation": None, "conversation_scenario": plot}
    found = told(place, {"conversation": []}, case=scenario)
    assert (found["response"], found["expected_response"]) == (None, None)
    assert found["tool_calls"] == found["expected_tool_calls"] == found["invocations"] == []
    assert found["case"]["conversation_scenario"] == plot


# --- What it does wrong -----------------------------------------------------------------------


@pytest.mark.parametrize("form", ["def", "async def"])
def test_what_it_raises_is_an_error_with_the_line(place: Place, form: str) -> None:
    code = f"{form} check(trial):\n    return {{}}['order']"
    found = scored(place, code)
    assert (found.status, found.reason) == (Status.ERROR, "KeyError: 'order' (checks.py:2)")


def test_what_ends_a_program_does_not_end_ours(place: Place) -> None:
    for statement, said in (
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ):
        found = scored(place, f"def check(trial): {statement}")
        assert found.status is Status.ERROR
        assert found.reason.startswith(said)


def test_one_that_dies_is_an_error_that_shows_how(place: Place) -> None:
    code = "import os, sys\ndef check(trial):\n    print('out of luck', flush=True); os._exit(3)"
    found = scored(place, code)
    assert found.status is Status.ERROR
    assert "exited with code 3" in found.reason
    assert "out of luck" in found.reason


@pytest.mark.parametrize("form", ["def", "async def"])
def test_one_that_hangs_is_out_of_time(
    place: Place, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_link, "GRACE_S", 0.2)
    code = f"""
        import os, time
        {form} check(trial):
            open("pid", "w").write(str(os.getpid()))
            time.sleep(600)
    """
    with passing(LONG_S, when=place.pid):
        found = scored(place, code, timeout_s=LONG_S)
    assert (found.status, found.reason) == (Status.ERROR, "checks:check timed out after 300 s")
    assert dies(place.pid())


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import numpi", "named 'numpi'\n  checks.py:1: import numpi\n  (install it for "),
        ("check = 5", "cannot load 'checks:check': it is not callable: int: 5"),
        ("", "has no attribute 'check'"),
    ],
)
def test_one_that_cannot_be_loaded_is_an_error_of_every_trial(
    place: Place, code: str, said: str
) -> None:
    for found in scores(place, code, "a", "b", "c"):
        assert found.status is Status.ERROR
        assert said in found.reason


# --- Neighbours -------------------------------------------------------------------------------


def test_trials_are_scored_at_the_same_time_in_one_process(place: Place) -> None:
    code = """
        import os, threading
        together = threading.Barrier(3)
        def check(trial):
            together.wait(300)
            return {"score": 0, "evidence": {"pid": os.getpid()}}
    """
    found = scores(place, code, "a", "b", "c")
    assert len({each.evidence["pid"] for each in found if each.evidence}) == 1
    assert all(each.status is Status.FAILED for each in found)


DIES = """
    import os, threading
    together = threading.Barrier(3)
    alone = os.path.exists("again")
    def check(trial):
        if not alone:
            together.wait(300)
            open("again", "w").close()
        if trial["case"]["eval_id"] == "bad":
            os._exit(3)
        return True
"""


def test_one_that_takes_its_neighbours_down_is_found_and_they_are_scored_again(
    place: Place,
) -> None:
    a, bad, b = scores(place, DIES, "a", "bad", "b")
    assert [a.status, b.status] == [Status.PASSED, Status.PASSED]
    assert bad.status is Status.ERROR
    assert "exited with code 3" in bad.reason


def test_one_that_hangs_costs_its_neighbours_nothing(place: Place) -> None:
    code = """
        import os, time
        again = os.path.exists("again")
        def check(trial):
            if trial["case"]["eval_id"] == "hangs":
                open("hangs", "w").close()
                time.sleep(600)
            open("again", "w").close()
            time.sleep(0 if again else 600)
            return True
    """
    found = criterion(place, code, timeout_s=1000)
    hanging, again = (place.root / name for name in ("hangs", "again"))

    async def main() -> list[Any]:
        async with found.start(place.context) as scorer:
            hangs = asyncio.create_task(scorer.score(trial("hangs").case, trace("hangs")))
            with passing(600, when=hanging.exists) as passed:
                await asyncio.to_thread(passed.wait)
                fine = asyncio.create_task(scorer.score(trial("fine").case, trace("fine")))
                # Under way when the other's time is up, and not out of time itself.
                with passing(600, when=again.exists):
                    return await asyncio.gather(hangs, fine, return_exceptions=True)

    hangs, fine = asyncio.run(main())
    assert str(hangs) == "checks:check timed out after 1000 s"
    assert fine.status is Status.PASSED


class Disturbing(Pool):
    """A pool of workers in which every call is cut off."""

    def __init__(self) -> None:
        self.alone: list[bool] = []

    async def ask_once(self, message: object, *, alone: bool = False, **_: object) -> Any:
        self.alone.append(alone)
        raise DisturbedError("its worker was stopped", alone=True)


def test_one_that_is_cut_off_again_and_again_is_an_error_and_not_tried_for_ever() -> None:
    pool = Disturbing()
    found = Python(python="checks:check")
    scorer = _Function(found, pool)
    result = asyncio.run(score(trial("a"), trace("a"), {"mine": found}, {"mine": scorer}))
    [only] = result.scores
    assert (only.status, only.reason) == (Status.ERROR, "its worker was stopped")
    assert pool.alone == [False, True, True, True]


# --- Where it runs ----------------------------------------------------------------------------


def test_it_runs_in_the_folder_of_the_configuration_and_finds_its_neighbours(place: Place) -> None:
    place.write("rules.py", "LIMIT = 0.25")
    code = """
        import os, rules
        def check(trial): return {"score": rules.LIMIT, "evidence": {"cwd": os.getcwd()}}
    """
    found = scored(place, code)
    assert found.value == 0.25
    assert found.evidence == {"cwd": str(place.root.resolve())}


def test_it_runs_under_the_interpreter_that_is_named(place: Place) -> None:
    (place.root / ".venv").symlink_to(Path(sys.prefix))
    code = "import sys\ndef check(trial): return {'score': 0, 'evidence': {'is': sys.executable}}"
    found = scored(place, code, interpreter=".venv/bin/python")
    assert found.evidence == {"is": str(place.root / ".venv/bin/python")}


def test_an_interpreter_that_is_not_there_is_named(place: Place) -> None:
    found = criterion(place, "", interpreter=".venv/bin/python")
    assert list(found.check(place.context)) == [
        ("interpreter", "there is no program '.venv/bin/python'")
    ]


def test_it_sees_no_secret_but_what_is_declared(place: Place) -> None:
    context = RunContext(
        env={**place.context.env, "SHOP_KEY": "k", "OTHER_TOKEN": "t"},
        root=place.root,
        now=lambda: 0.0,
    )
    found = criterion(
        place,
        """
        import os
        NAMES = ("SHOP_KEY", "OTHER_TOKEN", "MODE")
        def check(trial):
            return {"score": 0, "evidence": {name: os.environ.get(name) for name in NAMES}}
        """,
        env={"MODE": "test"},
    )
    passing_on = Python(python="checks:check", env=["SHOP_KEY"])

    async def seen(each: Python) -> Any:
        async with each.start(context) as scorer:
            return (await scorer.score(trial("a").case, trace("a"))).evidence

    assert asyncio.run(seen(found)) == {"SHOP_KEY": None, "OTHER_TOKEN": None, "MODE": "test"}
    assert asyncio.run(seen(passing_on)) == {"SHOP_KEY": "k", "OTHER_TOKEN": None, "MODE": None}


def test_what_a_runner_keeps_for_itself_cannot_be_passed_on(place: Place) -> None:
    [(field, message)] = criterion(place, "", env=["GITHUB_TOKEN"]).check(place.context)
    assert field == "env"
    assert "GITHUB_TOKEN" in message


def test_nothing_is_started_before_the_first_trial_and_nothing_is_left(place: Place) -> None:
    code = "import os; open('pid', 'w').write(str(os.getpid()))\ndef check(trial): return True"
    found = criterion(place, code)

    async def main() -> None:
        async with found.start(place.context) as scorer:
            assert place.pid() == 0
            await scorer.score(trial("a").case, trace("a"))
            assert place.pid()

    asyncio.run(main())
    assert dies(place.pid())


# --- What is compared with what ---------------------------------------------------------------


def test_the_digest_is_of_the_module_that_has_the_function(place: Place) -> None:
    found = criterion(place, "def check(trial): return True")
    before = found.made_of(place.context)
    assert before == found.made_of(place.context)
    place.write("checks.py", "def check(trial): return False")
    assert found.made_of(place.context) not in (None, before)
    package = place.root / "rules"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "deep.py").write_text("x")
    digests = [
        Python(python=f"{name}:f").made_of(place.context)
        for name in ("rules", "rules.deep", "rules.none", "json")
    ]
    assert [digest is None for digest in digests] == [False, False, True, True]
    assert digests[0] != digests[1]


def test_only_the_function_decides_the_value_and_not_where_or_how_long_it_runs() -> None:
    found = Python(python="checks:f", interpreter="python3", timeout_s=5, env={"A": "1"})
    assert found.options() == Python(python="checks:f").options()
    assert found.options() != Python(python="checks:g").options()


@pytest.mark.parametrize("target", ["checks", "checks.py:f()", "a/b:c", ":f", "checks:", "1:f"])
def test_the_function_is_named_by_module_and_name(target: str) -> None:
    expected = r"expected 'module:callable', such as 'agents\.weather:answer', found "
    with pytest.raises(ValidationError, match=expected):
        Python(python=target)
