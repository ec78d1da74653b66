"""What is taken as it is, what waits, and what runs again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.cases import Content, FunctionCall, Invocation, Part
from ci_eval.run_files.resume import (
    Decision,
    Node,
    Ran,
    Recovered,
    decide,
    ids,
    output_of,
    recovered,
    unwrapped,
)

RERUNS = Node(rerun_on_resume=True)
NAMES = st.frozensets(st.sampled_from("abc"))
NODES = st.builds(
    Node, rerun_on_resume=st.booleans(), wait_for_output=st.booleans(), is_workflow=st.booleans()
)
OUTPUTS = st.sampled_from([None, "done", 0, ""])


@st.composite
def recordings(draw: st.DrawFn) -> Recovered:
    interrupts = draw(NAMES)
    answered = draw(st.sets(st.sampled_from(sorted(interrupts)))) if interrupts else set()
    return Recovered(
        output=draw(OUTPUTS),
        route=draw(st.sampled_from([None, "left"])),
        transfer_to_agent=draw(st.sampled_from([None, "bob"])),
        interrupts=interrupts,
        responses=dict.fromkeys(sorted(answered), "yes"),
        failed=draw(st.booleans()),
        finished=draw(st.booleans()),
    )


def runs(**inputs: Any) -> Decision:
    return Decision(should_run=True, resume_inputs=inputs)


def came_to(output: Any, **more: Any) -> Decision:
    return Decision(should_run=False, output=output, **more)


# --- The table --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "found", "expected"),
    [
        (Node(), None, Decision(should_run=True)),
        (RERUNS, Recovered("said"), came_to("said")),
        (Node(), Recovered(0, "left"), came_to(0, route="left")),
        (Node(), Recovered(transfer_to_agent="bob"), came_to(None, transfer_to_agent="bob")),
        (Node(), Recovered("said", failed=True), runs()),
        (Node(is_workflow=True), Recovered("said"), runs()),
        (Node(), Recovered(), came_to(None)),
        (RERUNS, Recovered(), runs()),
        (RERUNS, Recovered(finished=True), came_to(None)),
        (Node(wait_for_output=True), Recovered(finished=True), runs()),
    ],
)
def test_what_is_over_is_taken_and_what_is_not_runs_again(node, found, expected):
    assert decide(node, found) == expected


@pytest.mark.parametrize(
    ("node", "responses", "expected"),
    [
        (Node(), {}, Decision(should_run=False, interrupts=frozenset("ab"))),
        (Node(), {"a": 1}, Decision(should_run=False, interrupts=frozenset("b"))),
        (RERUNS, {}, Decision(should_run=False, interrupts=frozenset("ab"))),
        (RERUNS, {"a": 1}, runs(a=1)),
        (RERUNS, {"a": 1, "b": None}, runs(a=1, b=None)),
        (Node(), {"a": 1, "b": None}, came_to({"a": 1, "b": None})),
    ],
)
def test_two_calls_that_wait_are_decided_by_what_is_answered(node, responses, expected):
    found = Recovered(interrupts=frozenset("ab"), responses=responses)

    assert decide(node, found) == expected


def test_one_answer_is_the_output_itself():
    found = Recovered(interrupts=frozenset("a"), responses={"a": {"ok": True}})

    assert decide(Node(), found) == came_to({"ok": True})


def test_what_ran_again_after_its_answer_and_came_to_nothing_does_not_run_once_more():
    answered = Recovered(interrupts=frozenset("a"), responses={"a": 1}, finished=True)

    assert decide(RERUNS, answered) == came_to(None)
    assert decide(RERUNS._replace(wait_for_output=True), answered) == runs(a=1)


@pytest.mark.parametrize(
    ("ran", "expected"),
    [
        (
            Ran("completed", "new", "left", "bob"),
            came_to("new", route="left", transfer_to_agent="bob"),
        ),
        (Ran("failed"), runs()),
        (Ran("waiting", interrupts=frozenset("x")), came_to(None, interrupts=frozenset("x"))),
        (Ran("running"), came_to("old")),
        (Ran("failed", is_static=True), came_to("old")),
    ],
)
def test_what_this_run_did_counts_more_than_what_was_recorded(ran, expected):
    assert decide(Node(), Recovered("old"), ran) == expected


@given(NODES, recordings())
def test_it_runs_with_the_answers_or_it_says_what_it_came_to(node, found):
    decision = decide(node, found)

    if decision.should_run:
        assert (decision.output, decision.route, decision.interrupts) == (None, None, frozenset())
        assert decision.resume_inputs == found.responses
    else:
        assert decision.resume_inputs is None


@given(NODES, recordings())
def test_nobody_goes_past_a_call_that_is_open(node, found):
    waits = found.interrupts - found.responses.keys()
    decision = decide(node, found)

    if decision.interrupts:
        assert decision.interrupts == waits
    elif waits:
        assert decision.should_run


@given(recordings())
def test_deciding_twice_is_deciding_once(found):
    """What a node came to, recorded, is taken from then on."""
    first = decide(Node(), found)
    if not first.should_run and not first.interrupts and first.output is not None:
        again = decide(Node(), Recovered(first.output, first.route, first.transfer_to_agent))
        assert again == first


# --- Outputs and answers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((Part(text="think", thought=True), Part(text=" hi ")), "hi"),
        ((Part(text="a"), Part(text="b")), "ab"),
        ((Part(text=" \n"),), None),
        ((Part(text="think", thought=True),), None),
        ((), None),
        (None, None),
    ],
)
def test_of_a_message_only_the_text_is_an_output(parts, expected):
    assert output_of(Content(parts=parts)) == expected


@pytest.mark.parametrize("value", [None, " as it is ", 0, {"parts": []}])
def test_any_other_output_is_left_as_it_is(value):
    assert output_of(value) == value


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"result": "yes"}, "yes"),
        ({"result": "5"}, 5),
        ({"result": '{"a": 1}'}, {"a": 1}),
        ({"result": "{"}, "{"),
        ({"result": "NaN"}, "NaN"),
        ({"result": True}, True),
        ({"result": None}, None),
        ({"confirmed": True}, {"confirmed": True}),
        ({"result": 1, "note": 2}, {"result": 1, "note": 2}),
        ({}, {}),
    ],
)
def test_an_answer_counts_as_what_it_says(response, expected):
    assert unwrapped(response) == expected


# --- Invocations ------------------------------------------------------------------------------


def invocation(*calls: FunctionCall) -> Invocation:
    return Invocation(
        user_content=Content.of_text("Refund 7", role="user"),
        final_response=Content.of_text("May I?", role="model"),
        waits_for=calls,
    )


def test_an_invocation_that_does_not_wait_came_to_its_response():
    assert decide(RERUNS, recovered(invocation(), {})) == came_to("May I?")


def test_what_an_agent_said_when_it_stopped_is_not_what_the_invocation_comes_to():
    asked = invocation(FunctionCall(id="x", name="approve"))

    assert decide(Node(), recovered(asked, {})).interrupts == {"x"}
    assert decide(Node(), recovered(asked, {"x": {"result": "go on"}})).output == "go on"


def test_calls_without_ids_are_told_apart_all_the_same():
    calls = (FunctionCall(name="approve"), FunctionCall(id="x"), FunctionCall(name="approve"))

    assert ids(calls) == ["call-1", "x", "call-3"]
