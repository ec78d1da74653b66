"""What our readers and votes make of judges' answers is what ADK makes of them.

`adk-2.13.0.judged.jsonl` was made by ADK (`make_adk_judged_vectors.py`).  Where
CI_EVAL_VECTORS names a folder with `adk_observations.json`, what was seen of ADK there is held
against ours, too.  One difference is everywhere: what has no verdict is an error here, where ADK
leaves it out, or counts it as invalid.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.case_language import KEY, SCENARIO, did, expecting
from support.judged_scores import Answers, drawn, judged

from ci_eval.criteria import _rubric_verdicts, adk_final_response_match_v2
from ci_eval.criteria import adk_per_turn_user_simulator_quality_v1 as simulator
from ci_eval.criteria.adk_final_response_match_v2 import FinalResponseMatch
from ci_eval.criteria.adk_hallucinations_v1 import Hallucinations
from ci_eval.criteria.adk_per_turn_user_simulator_quality_v1 import SimulatorQuality
from ci_eval.criteria.adk_rubric_based import RubricResponse, RubricToolUse, RubricTrajectory
from ci_eval.records.cases import Rubric, Status
from ci_eval.records.questions import Question, UnreadableError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

HERE = Path(__file__).parent
RECORDED = HERE / "adk-2.13.0.judged.jsonl"
ROWS = [json.loads(line) for line in RECORDED.read_bytes().splitlines()]
MATCH = FinalResponseMatch(threshold=0.5)
SIMULATOR = SimulatorQuality(threshold=0.5)
HALLUCINATIONS = Hallucinations(threshold=0.5)
STOP = SIMULATOR.stop_signal


def of(metric: str) -> list[Any]:
    found = [pytest.param(row, id=row["id"]) for row in ROWS if row["metric"] == metric]
    assert len(found) >= 75
    return found


def within(question: Question, name: str) -> str:
    """Return the value of this name in a question."""
    _, _, rest = question.prompt.partition(f"\n[{name} ")
    return rest.partition("\n")[2].partition(f"\n[/{name} ")[0]


def by_turn(name: str, answers: dict[str, list[Any]]) -> Answers:
    """Answer by what stands under `name`, each sample its own."""
    return lambda question: drawn(*answers[within(question, name)])(question)


def values(score: Score) -> list[float | None]:
    return [part.value for part in score.invocations]


def same(score: Score, row: dict[str, Any]) -> bool:
    """Return True if a score is ADK's, but for an error where ADK has no score of a turn."""
    if values(score) != row["turns"]:
        return False
    if None in row["turns"]:
        return score.status is Status.ERROR
    return score.value == pytest.approx(row["overall"], abs=1e-12)


PYTHON = os.environ.get("CI_EVAL_ADK_PYTHON", "")


@pytest.mark.skipif(not PYTHON, reason="CI_EVAL_ADK_PYTHON names no Python with google-adk")
def test_adk_answers_today_what_is_recorded(tmp_path: Path):
    script = shutil.copy(HERE / "make_adk_judged_vectors.py", tmp_path)
    subprocess.run([PYTHON, "-W", "ignore", script], check=True, timeout=900)

    made = (tmp_path / RECORDED.name).read_bytes()
    assert made == RECORDED.read_bytes()


# --- Invented answers -----------------------------------------------------------------------


@pytest.mark.parametrize("row", of("final_response_match_v2"))
def test_responses_match_where_adk_says_so(row: Any):
    texts = [f"a{n}" for n in range(len(row["answers"]))]
    say = by_turn("response", dict(zip(texts, row["answers"], strict=True)))
    samples = len(row["answers"][0])
    score = judged(MATCH, expecting(*texts), did(*texts), say, samples=samples).score

    assert same(score, row)


def is_readable(answer: str) -> bool:
    try:
        return bool(simulator.read(answer))
    except UnreadableError:
        return False


@pytest.mark.parametrize("row", of("per_turn_user_simulator_quality_v1"))
def test_messages_are_valid_where_adk_says_so(row: Any):
    case = SCENARIO
    turns = [{"user_content": {"parts": [{"text": each}]}} for each in row["messages"]]
    trace = Trace.model_validate({"key": KEY, "invocations": turns})
    asked = [*row["messages"][1:], STOP]
    say = by_turn("message", dict(zip(asked, row["answers"], strict=True)))
    score = judged(SIMULATOR, case, trace, say, samples=len(row["answers"][0])).score

    if not any(map(is_readable, row["answers"][-1])) and row["turns"][-1] != 0:
        # ADK lets an end without a verdict pass.
        assert score.status is Status.ERROR
        assert values(score)[:-1] == row["turns"][:-1]
    else:
        assert same(score, row)


@pytest.mark.parametrize("row", of("rubric_based_final_response_quality_v1"))
def test_rubrics_are_satisfied_where_adk_says_so(row: Any):
    rubrics = [
        {"rubric_id": name, "rubric_content": {"text_property": text}}
        for name, text in row["rubrics"].items()
    ]
    criterion = RubricResponse.model_validate({"threshold": 0.5, "rubrics": rubrics})
    texts = [f"a{n}" for n in range(len(row["answers"]))]
    say = by_turn("response", dict(zip(texts, row["answers"], strict=True)))
    samples = len(row["answers"][0])
    found = judged(criterion, expecting(*texts), did(*texts), say, samples=samples)

    told = [
        {each["rubric_id"]: each["verdict"] for each in evidence["rubrics"]}
        for evidence in found.evidence
    ]
    words = {1.0: "yes", 0.0: "no", None: None}
    assert told == [
        {name: words[turn.get(name)] for name in row["rubrics"]} for turn in row["verdicts"]
    ]
    if any(None in turn.values() for turn in told):
        assert found.score.status is Status.ERROR
    else:
        assert same(found.score, row)


@pytest.mark.parametrize("row", of("hallucinations_v1"))
def test_sentences_are_supported_where_adk_says_so(row: Any):
    def say(question: Question) -> str:
        return row["answers"]["verdicts" in question.schema["properties"]]

    score = judged(HALLUCINATIONS, expecting("?"), did(row["response"]), say).score
    if row["change"]:
        # A sentence that has no label, or an unknown one, does not count in ADK.
        assert score.status is Status.ERROR
    else:
        assert same(score, row)


# --- What was seen of ADK -------------------------------------------------------------------

FOLDER = os.environ.get("CI_EVAL_VECTORS")
SEEN = (
    json.loads((Path(FOLDER) / "adk_observations.json").read_text(encoding="utf-8"))
    if FOLDER
    else {"2.13.0": {}, "2.3.0": {}}
)
ADK: dict[str, Any] = SEEN["2.13.0"]
seen = pytest.mark.skipif(not FOLDER, reason="CI_EVAL_VECTORS names no folder")
ERROR = "error"


def result(score: Score) -> Any:
    return ERROR if score.status is Status.ERROR else score.value


def read_or_none(reader: Any, answer: str) -> bool | None:
    try:
        return bool(reader(answer)["valid"].yes)
    except UnreadableError:
        return None


LABELS = {"VALID": True, "INVALID": False, "NOT_FOUND": None}


@seen
@pytest.mark.parametrize(
    ("key", "reader", "different"),
    [
        # Other than in ADK, the answer is JSON, and any label has to be known.
        (
            "frm2.labels",
            adk_final_response_match_v2.read,
            {
                '{"is_the_agent_response_valid" : "valid"}': True,
                '"is_the_agent_response_valid": "valid"\n': None,
                '{"is_the_agent_response_invalid": "banana"}': None,
            },
        ),
        ("ptq.labels", simulator.read, {}),
    ],
)
def test_labels_are_read_as_adk_reads_them(
    key: str, reader: Any, different: dict[str, bool | None]
):
    wrong = {
        answer: label
        for answer, label in ADK[key]
        if read_or_none(reader, answer) != different.get(answer, LABELS[label])
    }
    assert wrong == {}


VALID, INVALID, OTHER = (
    json.dumps({"is_the_agent_response_valid": each}) for each in ("valid", "invalid", "?")
)
SAID = {"v": VALID, "i": INVALID, "n": OTHER, "0": "", "x": None, "-": None}


@seen
@pytest.mark.parametrize(
    ("key", "ours"),
    [
        *((f"frm2.agg[{each}]", None) for each in ("vvi", "vi", "vvii", "nnv", "ni", "v0n", "iiv")),
        ("frm2.agg[nnn]", ERROR),
        # ADK gives up on an invocation when one sample fails; here the others may decide.
        ("frm2.agg[vxv]", 1.0),
        ("frm2.agg[v-v]", 1.0),
        # An invocation without a verdict: ADK leaves it out.
        ("frm2.two_turns[vi|nn]", ERROR),
        ("frm2.two_turns[vv|nn]", ERROR),
        ("frm2.two_turns[vv|xv]", ERROR),
    ],
)
def test_samples_vote_as_in_adk(key: str, ours: Any):
    turns = key.partition("[")[2].rstrip("]").split("|")
    texts = [f"a{n}" for n in range(len(turns))]
    answers = {text: [SAID[each] for each in turn] for text, turn in zip(texts, turns, strict=True)}
    say = by_turn("response", answers)
    score = judged(MATCH, expecting(*texts), did(*texts), say, samples=len(turns[0])).score

    assert result(score) == (ADK[key]["score"] if ours is None else ours)


def test_without_a_reference_nobody_is_asked():
    # ADK has the judge compare with nothing, and takes its word (`frm2.no_reference`).
    assert MATCH.skip_reason(expecting("")) == "expects no response"
    found = judged(MATCH, expecting(""), did("a"), VALID)
    assert (found.score.status, found.asked) == ("skipped", [])
    # Of several invocations those that expect a response count.
    found = judged(MATCH, expecting("", "a"), did("b", "a"), VALID)
    assert (found.score.value, len(found.asked)) == (1.0, 1)


# Rubrics


def rubric(name: str, text: str, kind: str | None = None) -> dict[str, Any]:
    return {"rubric_id": name, "rubric_content": {"text_property": text}, "type": kind}


RA, RB = rubric("ra", "A is done"), rubric("rb", "B is done")
RESPONSE, TOOLS, WHOLE = "FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY"


def block(name: str, verdict: str) -> str:
    return f"ID: {name}\nProperty: p\nRationale: r\nVerdict: {verdict}"


def made(*rubrics: dict[str, Any], model: Any = RubricResponse, **more: Any) -> Any:
    return model.model_validate({"threshold": 0.5, "rubrics": rubrics, **more})


@seen
@pytest.mark.parametrize("number", range(14))
def test_verdicts_on_rubrics_are_read_as_adk_reads_them(number: int):
    answer, adk = ADK[f"rubric.parse[{number}]"]
    expected = {name: score == 1 for name, score in adk["per"][0][2] if score is not None}
    if "unknown" in answer:
        assert expected == {"ra": False}  # ADK finds the "no" in it
        expected = {}
    try:
        votes = _rubric_verdicts.read(answer, [Rubric.model_validate(each) for each in (RA, RB)])
    except UnreadableError:
        votes = {}
    assert {name: vote.yes for name, vote in votes.items()} == expected


@seen
@pytest.mark.parametrize(
    ("key", "answers", "ours"),
    [
        ("rubric.vote[yyn]", ["yes", "yes", "no"], None),
        ("rubric.vote[yn]", ["yes", "no"], None),
        ("rubric.vote[y+garbage]", ["yes", "garbage"], None),
        ("rubric.vote[garbage]", ["garbage"], ERROR),
        ("rubric.exc", [None], ERROR),
    ],
)
def test_samples_vote_on_rubrics_as_in_adk(key: str, answers: list[Any], ours: Any):
    said = [None if each is None else block("ra", each) for each in answers]
    found = judged(made(RA), expecting("a"), did("a"), drawn(*said), samples=len(said))
    assert result(found.score) == (ADK[key]["score"] if ours is None else ours)


def said_no(*names: str) -> Answers:
    """Answer no to these rubrics, and yes to the others that are asked about."""

    def say(question: Question) -> str:
        ids = [each["rubric_id"] for each in json.loads(within(question, "rubrics"))]
        return "\n\n".join(block(each, "no" if each in names else "yes") for each in ids)

    return say


def typed(kind: str | None, name: str = "rc") -> dict[str, Any]:
    return {"rubrics": [rubric(name, f"{name} is done", kind)]}


@seen
@pytest.mark.parametrize(
    ("key", "criterion", "turns"),
    [
        ("rubric.inv_typed", made(RA), [typed(RESPONSE)]),
        ("rubric.inv_wrongtype", made(RA), [typed(TOOLS)]),
        ("rubric.inv_untyped", made(RA), [typed(None)]),
        ("rubric.tool_use", made(RA, model=RubricToolUse), [{}]),
        ("rubric.multi_turn_3", made(RA, model=RubricTrajectory), [{}, {}, {}]),
    ],
)
def test_rubrics_of_invocations_count_as_in_adk(key: str, criterion: Any, turns: list[Any]):
    no = ["rc"] if key == "rubric.inv_typed" else []
    found = judged(criterion, expecting(*turns), did(*["a"] * len(turns)), said_no(*no)).score

    assert found.value == ADK[key]["score"]
    assert values(found) == [turn[0] for turn in ADK[key]["per"]]


@seen
def test_rubrics_of_invocations_alone_are_enough():
    case = expecting(typed(RESPONSE))
    assert judged(made(), case, did("a"), said_no()).score.value == 1.0
    assert ADK["rubric.only_invocation_level"]["score"] == 1.0


@seen
def test_all_verdicts_of_all_invocations_are_averaged_as_in_adk():
    case = expecting(typed(RESPONSE, "rb"), {})

    def say(question: Question) -> str:
        in_first = within(question, "response") == "first"
        return said_no(*([] if in_first else ["ra"]))(question)  # type: ignore[operator]  # it gives a function here

    score = judged(made(RA), case, did("first", "second"), say).score
    assert score.value == ADK["rubric.pooled_mean"]["score"]


@seen
def test_a_rubric_id_that_is_there_twice_is_an_error_as_in_adk():
    case = expecting(typed(RESPONSE, "ra"))
    assert result(judged(made(RA), case, did("a"), said_no()).score) == ERROR
    assert ADK["rubric.dup_id"].startswith("EXC ValueError")


@seen
def test_each_invocation_has_its_own_rubrics_as_in_adk_before_2_13():
    case = expecting(typed(RESPONSE, "t1"), typed(RESPONSE, "t2"))
    found = judged(made(), case, did("a", "b"), said_no()).score
    then, now = (SEEN[version]["rubric.per_turn_rubrics_differ"] for version in ("2.3.0", "2.13.0"))

    assert values(found) == [turn[0] for turn in then["per"]] == [1.0, 1.0]
    assert [turn[0] for turn in now["per"]] == [None, 1.0]


EVENTS: dict[str, Any] = {
    "user_content": {"parts": [{"text": "q"}]},
    "final_response": {"parts": [{"text": "final"}]},
    "intermediate_data": {
        "invocation_events": [{"author": "root", "content": {"parts": [{"text": "on the way"}]}}]
    },
    "app_details": {"agent_details": {"root": {"name": "root", "instructions": "Be kind."}}},
}


@seen
@pytest.mark.parametrize(
    ("key", "options", "without", "text"),
    [
        ("rubric.instr_with_events", {}, "", "Be kind."),
        ("rubric.instr_no_events", {}, "intermediate_data", "Be kind."),
        (
            "rubric.intermediate_flag",
            {"include_intermediate_responses_in_final": True},
            "",
            "on the way",
        ),
        ("rubric.intermediate_flag_off", {}, "", "on the way"),
    ],
)
def test_a_judge_of_rubrics_sees_what_adk_shows(
    key: str, options: dict[str, Any], without: str, text: str
):
    turn = {name: value for name, value in EVENTS.items() if name != without}
    [question] = judged(made(RA, **options), expecting("a"), did(turn), said_no()).asked
    assert (text in question.prompt) is ADK[key]


# Hallucinations


def tags(*sentences: str) -> str:
    return "\n".join(f"<sentence>{each}</sentence>" for each in sentences)


def labelled(**labels: str) -> str:
    return "\n\n".join(
        f"sentence: {name}\nlabel: {label}\nrationale: r\nsupporting_excerpt: null\n"
        "contradicting_excerpt: null"
        for name, label in labels.items()
    )


GOOD, POOR = "supported", "unsupported"


@seen
@pytest.mark.parametrize(
    ("key", "cut", "labels", "ours"),
    [
        ("hall.basic", tags("A", "B"), labelled(A=GOOD, B=POOR), None),
        (
            "hall.labels",
            tags(*"ABCDE"),
            labelled(A=GOOD, B="Not_Applicable", C=GOOD, D="contradictory", E="disputed"),
            None,
        ),
        # No value is an error here, where ADK has no score and goes on.
        ("hall.no_sentences", "None.", "", ERROR),
        ("hall.seg_exc", None, "", ERROR),
        ("hall.null_seg", "", "", ERROR),
        ("hall.all_weird", tags("A", "B"), labelled(A="fine", B="?"), ERROR),
        ("hall.bold_labels", tags("A"), "**sentence:** A\n**label:** supported", ERROR),
        # Sentences without a label do not count in ADK.
        ("hall.partial_validator", tags("A", "B"), labelled(A=GOOD), ERROR),
    ],
)
def test_shares_of_sentences_are_those_of_adk(key: str, cut: Any, labels: str, ours: Any):
    def say(question: Question) -> Any:
        return labels if "verdicts" in question.schema["properties"] else cut

    text = "A. B. C. D. E." if key == "hall.labels" else "A. B."
    response = "A." if key == "hall.bold_labels" else text
    score = judged(HALLUCINATIONS, expecting("?"), did(response), say).score

    assert result(score) == (ADK[key]["score"] if ours is None else ours)
    if ours:
        assert ADK[key]["score"] in (None, 1.0)


@seen
def test_texts_on_the_way_are_judged_as_in_adk():
    def say(question: Question) -> str:
        if "verdicts" in question.schema["properties"]:
            return labelled(final=GOOD) if "final" in within(question, "sentences") else poor
        return tags(within(question, "text"))

    poor = "sentence: on the way\nlabel: unsupported\nrationale: r"
    both = HALLUCINATIONS.model_copy(update={"evaluate_intermediate_nl_responses": True})
    score = judged(both, expecting("?"), did(EVENTS), say).score
    assert score.value == ADK["hall.intermediate"]["score"]


@seen
def test_an_invocation_without_sentences_is_an_error_where_adk_leaves_it_out():
    def say(question: Question) -> Any:
        if "verdicts" in question.schema["properties"]:
            return labelled(A=GOOD)
        return tags("A") if within(question, "text") == "A" else "None."

    score = judged(HALLUCINATIONS, expecting("?", "?"), did("A", "B"), say).score
    assert (values(score), score.status) == ([1.0, None], Status.ERROR)
    assert ADK["hall.two_turns_one_unscored"]["score"] == 1.0


# The simulated user

TRUE, FALSE = '{"is_valid": True}', '{"is_valid": False}'


@seen
@pytest.mark.parametrize(
    ("key", "messages", "answers", "ours"),
    [
        ("ptq.one_turn_ok", [" Hi "], [[TRUE]], None),
        ("ptq.one_turn_wrong_start", ["Ho"], [[TRUE]], None),
        ("ptq.stop_fails", ["Hi"], [[FALSE]], None),
        ("ptq.two_turns", ["Hi", "a"], [[FALSE], [TRUE]], None),
        ("ptq.tie", ["Hi", "a"], [[TRUE, FALSE], [TRUE, TRUE]], None),
        # ADK counts what has no verdict as invalid, and an end without one as valid.
        ("ptq.two_turns_unscored", ["Hi", "a"], [["?"], [TRUE]], ERROR),
        ("ptq.stop_unscored", ["Hi", "a"], [[TRUE], ["?"]], ERROR),
        ("ptq.nothing", ["Hi", "a"], [[None], [TRUE]], ERROR),
    ],
)
def test_a_simulated_user_is_judged_as_in_adk(
    key: str, messages: list[str], answers: list[list[Any]], ours: Any
):
    turns = [{"user_content": {"parts": [{"text": each}]}} for each in messages]
    trace = Trace.model_validate({"key": KEY, "invocations": turns})
    say = by_turn("message", dict(zip([*messages[1:], STOP], answers, strict=True)))
    score = judged(SIMULATOR, SCENARIO, trace, say, samples=len(answers[0])).score

    assert result(score) == (ADK[key]["score"] if ours is None else ours)


@seen
def test_a_threshold_that_nothing_can_reach_is_refused_where_adk_lets_all_fail():
    assert ADK["ptq.threshold_2"]["score"] == 0.0
    with pytest.raises(ValidationError):
        SimulatorQuality(threshold=2)


@seen
def test_nothing_that_was_seen_is_left_out():
    """Each experiment is named above, by its key or by its group."""
    text = Path(__file__).read_text(encoding="utf-8")
    keys = [key for key in ADK if key.split(".")[0] in ("frm2", "rubric", "hall", "ptq")]
    assert len(keys) > 50
    assert [
        key for key in keys if key not in text and f"{key.partition('[')[0]}[" not in text
    ] == []
