import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support import jumping_clock
from support.case_language import did, expecting
from support.scripted_judge import asker, context, judge

from ci_eval.criteria.adk_final_response_match_v2 import FinalResponseMatch
from ci_eval.criteria.adk_final_response_match_v2 import read as read_match
from ci_eval.llm.judge_settings import JudgeOptions, Judging
from ci_eval.llm.model_client import MAX_ANSWER_CHARS, MAX_UNUSABLE, Judged, check, environment
from ci_eval.plugins.points import Asked
from ci_eval.records.errors import JudgeError, UsageError
from ci_eval.records.questions import Answer, Question, UnreadableError
from ci_eval.records.results import JudgeUsage

MATCH = FinalResponseMatch(threshold=0.5)
QUESTION = Question("ci/c", "Judge.", "What of this?", {})
VALID, INVALID = (
    json.dumps({"reasoning": "so", "is_the_agent_response_valid": label})
    for label in ("valid", "invalid")
)


def word(text):
    """Read a single word."""
    if " " in text:
        raise UnreadableError("it holds several words")
    return text


async def ask(found, question=QUESTION, read=word, **more):
    return await found.panel(MATCH).judges[0].ask(question, read, **more)


def test_an_answer_is_read_and_what_it_took_is_counted(tmp_path: Path):
    async def work():
        told = judge(lambda _: "yes", model="gpt-4o")
        async with asker(tmp_path, told) as found:
            panel = found.panel(MATCH)
            return await panel.judges[0].ask(QUESTION, word), panel.usage

    reading, usage = asyncio.run(work())

    assert (reading.value, reading.cached, reading.failed) == ("yes", False, False)
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (1, 100, 10)
    assert usage.cost_usd == pytest.approx((100 * 2.5 + 10 * 10) / 1e6)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("two words", "it holds several words"),
        ("", "the answer was empty"),
        (" \n", "the answer was empty"),
        (Answer(text="y", finish="length"), "was cut off"),
        (Answer(text="", finish="blocked"), "blocked by the provider's filters"),
        (Answer(text="y", finish="other"), "ended before it was complete"),
        ("y" * (MAX_ANSWER_CHARS + 1), "more than 200,000 characters"),
    ],
)
def test_a_bad_answer_is_asked_for_once_more_with_the_reason(tmp_path: Path, bad, reason):
    told = judge(lambda question: "fine" if question.remark else bad)

    async def work():
        async with asker(tmp_path, told) as found:
            return await ask(found)

    assert asyncio.run(work()).value == "fine"
    first, second = told.asked
    assert first.remark == ""
    assert reason in second.prompt
    assert second.prompt.startswith(QUESTION.text)


def test_an_answer_that_stays_bad_is_no_vote_and_no_third_call(tmp_path: Path):
    told = judge(lambda _: "two words")

    async def work():
        async with asker(tmp_path, told) as found:
            return await ask(found)

    reading = asyncio.run(work())
    assert (reading.value, reading.failed) == (None, False)
    assert reading.reason == "it holds several words"
    assert len(told.asked) == 2


def test_what_was_answered_once_is_not_asked_again_bad_answers_neither(tmp_path: Path):
    told = judge(lambda question: "two words" if question.sample else "yes")

    async def work():
        async with asker(tmp_path, told) as found:
            panel = found.panel(MATCH)
            readings = [
                await panel.judges[0].ask(Question("ci/c", "", "t", {}, sample), word)
                for sample in (0, 1)
            ]
            return readings, panel.usage

    first, used = asyncio.run(work())
    again, usage = asyncio.run(work())

    assert used.calls == len(told.asked) == 3
    assert (usage.calls, usage.cached) == (0, 2)
    assert [each.value for each in first] == [each.value for each in again] == ["yes", None]
    assert [each.cached for each in again] == [True, True]


def test_a_kept_answer_that_nobody_can_read_may_be_asked_for_anew(tmp_path: Path):
    answers = iter(["two words", "two words", "yes"])
    told = judge(lambda _: next(answers))

    async def work(*, fresh):
        async with asker(tmp_path, told) as found:
            return (await ask(found, fresh=fresh)).value

    assert asyncio.run(work(fresh=False)) is None
    assert asyncio.run(work(fresh=False)) is None
    assert asyncio.run(work(fresh=True)) == "yes"
    assert asyncio.run(work(fresh=False)) == "yes"


@pytest.mark.parametrize(
    "change",
    [
        {"about": "ci/other"},
        {"instructions": "Judge well."},
        {"text": "And of that?"},
        {"schema": {"type": "object"}},
        {"sample": 1},
    ],
)
def test_everything_that_decides_an_answer_is_in_its_key(tmp_path: Path, change):
    told = judge(lambda _: "yes")

    async def work(question):
        async with asker(tmp_path, told) as found:
            await ask(found, question)

    asyncio.run(work(QUESTION))
    fields = ("about", "instructions", "text", "schema", "sample")
    asyncio.run(work(Question(**{f: getattr(QUESTION, f) for f in fields} | change)))

    assert len(told.asked) == 2


@pytest.mark.parametrize("change", [{"model": "other"}, {"settings": {"temperature": 0}}])
def test_another_model_or_setting_never_reuses_an_answer(tmp_path: Path, change):
    one, two = judge(lambda _: "yes"), judge(lambda _: "no", **{"model": "m", **change})

    async def work(told):
        async with asker(tmp_path, told) as found:
            criterion = FinalResponseMatch(threshold=0.5)
            criterion = criterion.model_copy()
            judging = found._judging
            reached = judging.default
            seat = found.panel(criterion).judges[0]
            return reached, (await replace(seat, judge=told).ask(QUESTION, word)).value

    assert asyncio.run(work(one))[1] == "yes"
    assert asyncio.run(work(two))[1] == "no"


def test_the_same_question_at_the_same_time_is_asked_once(tmp_path: Path):
    told = judge(lambda _: "yes", delay_s=0.01)

    async def work():
        async with asker(tmp_path, told) as found:
            return await asyncio.gather(*(ask(found) for _ in range(5)))

    assert [each.value for each in asyncio.run(work())] == ["yes"] * 5
    assert len(told.asked) == 1


def test_replay_asks_nobody_and_says_what_is_missing(tmp_path: Path):
    told = judge(lambda _: "yes")

    async def work(question, mode):
        async with asker(tmp_path, told, mode=mode) as found:
            return await ask(found, question)

    asyncio.run(work(QUESTION, "auto"))
    known = asyncio.run(work(QUESTION, "replay"))
    missing = asyncio.run(work(Question("ci/c", "", "new", {}), "replay"))

    assert known.value == "yes"
    assert missing.failed
    assert "not in .ci-eval/cache/judge.jsonl" in missing.reason
    assert len(told.asked) == 1


def test_record_asks_anew_and_leaves_one_line_for_each_question(tmp_path: Path):
    answers = iter(["old", "new"])
    told = judge(lambda _: next(answers))

    async def work(mode):
        async with asker(tmp_path, told, mode=mode) as found:
            return [(await ask(found)).value for _ in range(3)]

    assert asyncio.run(work("auto")) == ["old"] * 3
    assert asyncio.run(work("record")) == ["new"] * 3
    assert asyncio.run(work("replay")) == ["new"] * 3
    assert len((tmp_path / ".ci-eval/cache/judge.jsonl").read_text().splitlines()) == 2


def test_off_keeps_nothing(tmp_path: Path):
    told = judge(lambda _: "yes")

    async def work():
        async with asker(tmp_path, told, mode="off") as found:
            await ask(found)
            await ask(found)

    asyncio.run(work())
    assert len(told.asked) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_question_that_is_too_long_is_an_error_that_costs_nothing(tmp_path: Path):
    told = judge(lambda _: VALID)

    async def work():
        async with asker(tmp_path, told, max_prompt_chars=100_000) as found:
            case, trace = expecting("short"), did("x" * 5_000_000)
            return await Judged(MATCH, found).score(case, trace)

    score = asyncio.run(work())
    assert score.status == "error"
    assert "more than the 100,000 that `judge.max_prompt_chars` allows" in score.reason
    assert told.asked == []


def test_a_question_nobody_answers_is_an_error_and_not_a_vote(tmp_path: Path):
    def say(_question):
        raise JudgeError("no such model", hopeless=True)

    told = judge(say)

    async def work():
        async with asker(tmp_path, told) as found:
            return await asyncio.gather(
                *(Judged(MATCH, found).score(expecting(str(n)), did(str(n))) for n in range(10))
            )

    scores = asyncio.run(work())
    assert {score.status for score in scores} == {"error"}
    assert all("no such model" in score.reason for score in scores)
    assert len(told.asked) <= 3 * 10
    assert sum(score.judging.calls for score in scores) == len(told.asked)


def test_calls_stop_where_the_budget_ends_and_what_was_scored_stays(tmp_path: Path):
    told = judge(lambda _: VALID)

    async def work():
        async with asker(tmp_path, told, max_calls=7) as found:
            judged = Judged(MATCH, found)
            return [await judged.score(expecting(str(n)), did(str(n))) for n in range(4)]

    scores = asyncio.run(work())
    assert Counter(score.status for score in scores) == {"passed": 2, "error": 2}
    assert "the 7 calls of `judge.max_calls` are used up" in scores[2].reason
    assert len(told.asked) == 7


def test_what_others_have_spent_of_the_budget_counts(tmp_path: Path):
    told = judge(lambda _: VALID)

    async def work():
        spent = JudgeUsage(calls=4)
        async with asker(tmp_path, told, max_calls=7, spent=spent) as found:
            judged = Judged(MATCH, found)
            return [await judged.score(expecting(str(n)), did(str(n))) for n in range(2)]

    scores = asyncio.run(work())
    assert Counter(score.status for score in scores) == {"passed": 1, "error": 1}
    assert "the 7 calls of `judge.max_calls` are used up" in scores[1].reason
    assert len(told.asked) == 3


def test_money_stops_it_too(tmp_path: Path):
    told = judge(lambda _: VALID)
    prices = {"m": {"input": 1000, "output": 1000}}  # 11 cents a call

    async def work():
        async with asker(tmp_path, told, max_cost_usd=0.50, prices=prices) as found:
            judged = Judged(MATCH, found)
            return [await judged.score(expecting(str(n)), did(str(n))) for n in range(4)]

    scores = asyncio.run(work())
    assert sum(score.judging.cost_usd for score in scores) <= 0.50
    assert scores[-1].status == "error"
    assert "in `judge.max_cost_usd` is spent" in scores[-1].reason


def test_a_jury_decides_by_majority_and_its_agreement_is_noted(tmp_path: Path):
    jury = [
        judge(lambda _: VALID, model="a"),
        judge(lambda _: VALID, model="b"),
        judge(lambda _: INVALID, model="c"),
    ]

    async def work():
        async with asker(tmp_path, *jury) as found:
            return await Judged(MATCH, found).score(expecting("hi"), did("hello"))

    score = asyncio.run(work())
    assert score.value == 1.0
    assert score.judging.agreed == pytest.approx(1 / 3)
    evidence = score.invocations[0].evidence
    assert evidence["votes"] == {"yes": 2, "no": 1}
    assert {name: each["yes"] for name, each in evidence["jury"].items()} == {
        "a": True,
        "b": True,
        "c": False,
    }


def test_models_of_one_provider_share_its_client_and_its_pace(tmp_path: Path):
    one = judge(lambda _: VALID, model="a", delay_s=1)
    two = one.model_copy(update={"model": "b", "settings": {"temperature": 0}})

    async def work():
        async with asker(tmp_path, one, two, concurrency=3) as found:
            judged = Judged(MATCH, found)
            await asyncio.gather(*(judged.score(expecting(str(n)), did(str(n))) for n in range(5)))

    jumping_clock.run(work())
    assert (one.opened, one.most_at_once) == (1, 3)
    assert {(each.model, str(dict(each.settings))) for each in one.asked} == {
        ("a", "{}"),
        ("b", "{'temperature': 0}"),
    }


def test_a_divided_jury_of_two_says_no_as_a_tie_does(tmp_path: Path):
    jury = [judge(lambda _: VALID, model="a"), judge(lambda _: INVALID, model="b")]

    async def work():
        async with asker(tmp_path, *jury) as found:
            return await Judged(MATCH, found).score(expecting("hi"), did("hello"))

    assert asyncio.run(work()).value == 0.0


def test_keys_may_stand_in_a_file_and_the_environment_comes_first(tmp_path: Path):
    (tmp_path / "keys.env").write_text("# mine\nA='from file'\nB=${A} $(id)\nexport C=3\nD\n")
    judging = Judging(JudgeOptions(env_file="keys.env"))

    found = environment(judging, context(tmp_path, A="from outside"))

    assert found == {"A": "from outside", "B": "${A} $(id)", "C": "3"}


def test_a_file_of_keys_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(UsageError, match=r"keys\.env"):
        environment(Judging(JudgeOptions(env_file="keys.env")), context(tmp_path))


@pytest.mark.parametrize(
    ("mode", "kept", "refused"),
    [
        ("auto", False, True),
        ("auto", True, False),
        ("record", True, True),
        ("off", True, True),
        ("replay", False, False),
    ],
)
def test_a_missing_key_is_told_before_anything_runs(tmp_path: Path, mode, kept, refused):
    if kept:
        path = tmp_path / ".ci-eval/cache/judge.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text('{"ci-eval cassette":1}\n{"key":"%s","answer":{}}\n' % ("0" * 32))

    class Keyed(type(judge(lambda _: VALID))):
        def missing(self, env):
            return "" if "KEY" in env else "KEY"

    judging = Judging(JudgeOptions(mode=mode), Keyed(model="m"))
    if refused:
        with pytest.raises(UsageError, match="the judge of adk/final_response_match_v2 lacks KEY"):
            check(judging, [MATCH], context(tmp_path))
    else:
        check(judging, [MATCH], context(tmp_path))
    check(judging, [MATCH], context(tmp_path, KEY="k"))


def test_a_criterion_says_itself_whom_it_asks_and_how_often():
    own = FinalResponseMatch.model_validate(
        {
            "threshold": 0.5,
            "judge_model_options": {
                "judge_model": "other",
                "num_samples": 2,
                "judge_model_config": {"temperature": 0.1},
            },
        }
    )
    assert own.asked() == Asked("other", 2, {"temperature": 0.1})
    assert read_match(VALID)["valid"].yes


@pytest.mark.parametrize(("usable", "calls"), [(False, 2 * MAX_UNUSABLE), (True, 59)])
def test_a_model_whose_answers_are_never_usable_is_given_up(tmp_path: Path, *, usable, calls):
    told = judge(lambda question: "yes" if usable and question.text == "0" else "two words")

    async def work():
        async with asker(tmp_path, told) as found:
            return [await ask(found, replace(QUESTION, text=str(number))) for number in range(30)]

    *_, last = asyncio.run(work())
    assert len(told.asked) == calls
    assert last.failed is not usable
    if not usable:
        said = f"none of the first {MAX_UNUSABLE} answers of {told.model} was usable"
        assert last.reason == f"not asked again, because {said}"
