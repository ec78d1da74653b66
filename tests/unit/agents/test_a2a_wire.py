"""What A2A agents say of themselves and of their tasks, in both versions of the protocol."""

import base64
import json
from typing import Any

import pytest

from ci_eval.agents._a2a_task import Progress, Received
from ci_eval.agents._a2a_wire import V03, V10, Card, Interface, Message, read_update
from ci_eval.records.cases import Content, FunctionCall, FunctionResponse, Part, ToolCall
from ci_eval.records.errors import TrialError

URL = "http://127.0.0.1:9999/"
ASKED = Content.of_text("x", role="user")


# --- Cards ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "interface"),
    [
        ({"url": URL, "protocolVersion": "0.3.0"}, Interface(URL, V03)),
        ({"url": URL, "capabilities": {"streaming": True}}, Interface(URL, V03, streams=True)),
        (
            {
                "url": "grpc://a",
                "preferredTransport": "GRPC",
                "protocolVersion": "0.3.0",
                "additionalInterfaces": [{"url": URL, "transport": "JSONRPC"}],
            },
            Interface(URL, V03),
        ),
        (
            {
                "url": "http://old",
                "protocolVersion": "0.3",
                "supportedInterfaces": [
                    {"url": "g", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                    {"url": "http://old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
                    {
                        "url": URL,
                        "protocolBinding": "JSONRPC",
                        "protocolVersion": "1.0",
                        "tenant": "t",
                    },
                ],
            },
            Interface(URL, V10, "t"),
        ),
    ],
    ids=["0.3", "without a version", "another binding first", "both versions"],
)
def test_a_card_says_how_its_agent_is_spoken_to(card: Any, interface: Interface) -> None:
    assert Card.model_validate({"name": "a", "skills": [1], **card}).interface() == interface


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({}, "offers nothing; ci-eval only supports JSONRPC"),
        ({"url": "", "protocolVersion": "0.3"}, "offers nothing"),
        ({"url": "x", "preferredTransport": "GRPC"}, "offers GRPC; ci-eval only supports JSONRPC"),
    ],
)
def test_an_agent_that_cannot_be_spoken_to_is_told(card: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Card.model_validate(card).interface()


# --- Results ----------------------------------------------------------------------------------


def test_both_versions_tell_the_same_of_a_task() -> None:
    old = {
        "kind": "task",
        "id": "t",
        "contextId": "c",
        "status": {
            "state": "input-required",
            "message": {
                "kind": "message",
                "messageId": "m",
                "role": "agent",
                "parts": [{"kind": "text", "text": "When?"}],
            },
        },
    }
    new = {
        "task": {
            "id": "t",
            "contextId": "c",
            "status": {
                "state": "TASK_STATE_INPUT_REQUIRED",
                "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "When?"}]},
            },
        }
    }

    assert read_update(old) == read_update(new) == read_update(new["task"])


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ({"kind": "text", "text": "a"}, {"text": "a"}, Part(text="a")),
        (
            {"kind": "file", "file": {"uri": "http://f", "mimeType": "image/png"}},
            {"url": "http://f", "mediaType": "image/png"},
            Part(file_data={"mime_type": "image/png", "file_uri": "http://f"}),
        ),
        (
            {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain"}},
            {"raw": "aGk=", "mediaType": "text/plain"},
            Part(inline_data={"mime_type": "text/plain", "data": "aGk="}),
        ),
    ],
)
def test_both_versions_mean_the_same_part(old: Any, new: Any, part: Part) -> None:
    for given in (old, new):
        message = read_update({"message": {"messageId": "m", "parts": [given]}})
        assert isinstance(message, Message)
        assert message.parts[0].as_part() == part


@pytest.mark.parametrize(
    "result",
    [
        None,
        5,
        [],
        {},
        {"kind": "poem"},
        {"kind": "task"},
        {"task": {"id": 5, "status": {"state": "x"}}},
        {"statusUpdate": {"taskId": "t"}},
        {"message": {"parts": "text"}},
        {"artifactUpdate": {"taskId": "t", "artifact": {"parts": [5]}}},
    ],
)
def test_other_results_are_refused(result: Any) -> None:
    with pytest.raises(ValueError, match=r"holds neither a task|does not fit the protocol"):
        read_update(result)


# --- Messages ---------------------------------------------------------------------------------


def test_messages_are_written_in_the_words_of_each_version() -> None:
    parts = (
        Part(text="a"),
        Part(file_data={"mime_type": "image/png", "file_uri": "http://f"}),
        Part(inline_data={"mimeType": "text/plain", "data": "aGk="}),
    )
    content = Content(role="user", parts=parts)

    assert V03.message(content, {"messageId": "m", "contextId": "c"}) == {
        "kind": "message",
        "messageId": "m",
        "contextId": "c",
        "role": "user",
        "parts": [
            {"kind": "text", "text": "a"},
            {"kind": "file", "file": {"uri": "http://f", "mimeType": "image/png"}},
            {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain"}},
        ],
    }
    assert V10.message(content, {"messageId": "m"}) == {
        "messageId": "m",
        "role": "ROLE_USER",
        "parts": [
            {"text": "a"},
            {"url": "http://f", "mediaType": "image/png"},
            {"raw": "aGk=", "mediaType": "text/plain"},
        ],
    }


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"result": "Monday"}, "Monday"),
        ({"error": "nobody is in"}, "nobody is in"),
        ({"result": 5}, "5"),
        ({"day": 1, "hour": 2}, '{"day": 1, "hour": 2}'),
    ],
)
def test_the_answer_to_a_question_is_a_text(response: Any, text: str) -> None:
    answer = FunctionResponse(id="i", name="input_required", response=response)
    message = V10.message(Content(role="user", parts=(Part(function_response=answer),)), {})

    assert message["parts"] == [{"text": text}]


def test_the_answer_to_a_call_is_data_as_adk_wants_it() -> None:
    answer = FunctionResponse(id="i", name="refund", response={"ok": True})
    message = V03.message(Content(role="user", parts=(Part(function_response=answer),)), {})

    assert message["parts"] == [
        {
            "kind": "data",
            "data": {"id": "i", "name": "refund", "response": {"ok": True}},
            "metadata": {"adk_type": "function_response"},
        }
    ]


def test_what_has_no_place_in_a_message_is_refused() -> None:
    part = Part(function_call=FunctionCall(name="a"))
    with pytest.raises(TrialError, match="this one has function_call"):
        V10.message(Content(role="user", parts=(part,)), {})


# --- Tasks ------------------------------------------------------------------------------------


def status(state: str, text: str = "", number: int = 0, **metadata: Any) -> Any:
    message = {
        "messageId": f"m{number}",
        "role": "agent",
        "parts": [{"kind": "text", "text": text}],
    }
    return {
        "kind": "status-update",
        "taskId": "t",
        "contextId": "c",
        "status": {"state": state, **({"message": message} if text else {})},
        "metadata": metadata,
    }


def artifact(name: str, *parts: Any, append: bool = False) -> Any:
    given = [{"text": each} if isinstance(each, str) else each for each in parts]
    made = {"artifactId": name, "parts": given}
    return {"artifactUpdate": {"taskId": "t", "artifact": made, "append": append}}


def tool(kind: str, **data: Any) -> Any:
    return {"data": data, "metadata": {"adk_type": kind}}


def progress(*results: Any, heard: Received | None = None) -> Progress:
    found = Progress(heard or Received())
    for each in results:
        found.add(read_update(each))
    return found


CALL = tool("function_call", id="1", name="track", args={"order": 9.0})
ANSWER = tool("function_response", id="1", name="track", response={"place": "Oslo"})


def test_artifacts_are_the_response() -> None:
    found = progress(
        status("working", "wait", 1),
        artifact("a", "It is "),
        artifact("a", "in Oslo.", append=True),
        artifact("b", "Soon here."),
        status("completed", "done", 2),
    )

    assert found.state == "completed"
    assert found.invocation(ASKED, 1.5).response == "It is in Oslo.\nSoon here."
    assert found.invocation(ASKED, 1.5).duration == 1.5


def test_an_artifact_that_is_not_appended_to_is_replaced() -> None:
    found = progress(artifact("a", "no"), artifact("a", "yes"), status("completed"))
    assert found.invocation(ASKED, 0).response == "yes"


def test_without_artifacts_the_last_word_is_the_response() -> None:
    found = progress(status("working", "wait", 1), status("completed", "In Oslo.", 2))
    assert found.invocation(ASKED, 0).response == "In Oslo."


def test_a_message_is_a_response_and_ends_it() -> None:
    found = progress({"message": {"messageId": "m", "contextId": "c", "parts": [{"text": "Hi"}]}})

    assert (found.state, found.is_settled, found.context_id) == ("completed", True, "c")
    assert found.invocation(ASKED, 0).response == "Hi"


def test_data_alone_are_a_text_and_beside_a_text_stay_data() -> None:
    data = {"data": {"day": 3.0, "share": 0.5}}
    alone = progress(artifact("a", data), status("completed")).invocation(ASKED, 0)
    beside = progress(artifact("a", "See:", data), status("completed")).invocation(ASKED, 0)

    assert json.loads(alone.response) == {"day": 3, "share": 0.5}
    assert alone.response == '{"day": 3, "share": 0.5}'
    assert beside.response == "See:"
    kept = beside.final_response.parts[1].inline_data
    assert kept["mime_type"] == "application/json"
    assert json.loads(base64.b64decode(kept["data"])) == {"day": 3, "share": 0.5}


def test_who_does_not_tell_of_calls_has_no_trajectory() -> None:
    found = progress(status("working", "wait", 1), artifact("a", "x"), status("completed"))
    assert found.invocation(ASKED, 0).intermediate_data is None


def test_a_server_of_adk_that_tells_of_no_call_made_none() -> None:
    found = progress(status("working", adk_app_name="shop"), artifact("a", "x"))
    assert found.invocation(ASKED, 0).events == ()


def test_calls_in_artifacts_are_the_trajectory_and_what_stands_before_is_no_response() -> None:
    found = progress(
        artifact("a", "Let me see.", CALL),
        artifact("b", ANSWER),
        artifact("c", "In Oslo."),
        status("completed"),
    )
    invocation = found.invocation(ASKED, 0)

    assert invocation.response == "In Oslo."
    assert invocation.tool_calls == (ToolCall("track", {"order": 9}, {"place": "Oslo"}),)
    assert invocation.events[0].content.text == "Let me see."


def test_what_is_told_twice_happened_once() -> None:
    message = {"messageId": "m1", "role": "agent", "parts": [CALL]}
    task = {
        "kind": "task",
        "id": "t",
        "status": {"state": "completed"},
        "history": [{"messageId": "u", "role": "user", "parts": [{"text": "x"}]}, message],
        "artifacts": [{"artifactId": "a", "parts": [CALL, ANSWER, {"text": "In Oslo."}]}],
    }
    heard = Received()
    found = progress(task, task, heard=heard).invocation(ASKED, 0)
    again = progress(task, heard=heard).invocation(ASKED, 0)

    assert found.tool_calls == (ToolCall("track", {"order": 9}, {"place": "Oslo"}),)
    assert found.response == "In Oslo."
    assert again.tool_calls == ()
    assert again.response == ""


def test_what_was_heard_survives_json() -> None:
    heard = Received()
    progress(artifact("a", "x", CALL), status("working", "y", 4), heard=heard).invocation(ASKED, 0)
    text = json.dumps(heard.model_dump(mode="json", by_alias=True, exclude_none=True))

    assert Received.model_validate_json(text) == heard


def test_the_tokens_of_adk_are_counted_and_its_last_word_is_not_said_twice() -> None:
    usage = {"promptTokenCount": 11.0, "candidatesTokenCount": 7.0, "trafficType": "x"}
    found = progress(
        status("working", "In Oslo.", 1, adk_author="shop", adk_usage_metadata=usage),
        artifact("a", "In Oslo."),
        status("completed"),
    )
    [event] = found.invocation(ASKED, 0).events

    assert (event.author, event.content) == ("shop", None)
    assert event.usage_metadata == {"prompt_token_count": 11, "candidates_token_count": 7}


def test_a_question_is_a_call_that_waits() -> None:
    found = progress(status("input-required", "Which day?", 1)).invocation(ASKED, 0)
    [call] = found.waits_for

    assert (call.name, call.args) == ("input_required", {"message": "Which day?"})
    assert call.id
    assert found.response == "Which day?"


def test_a_tool_that_adk_waits_for_is_waited_for_itself() -> None:
    waiting = {**CALL, "metadata": {**CALL["metadata"], "adk_is_long_running": True}}
    found = progress(artifact("a", CALL), status("input-required", "x", 1)).invocation(ASKED, 0)
    task = {
        "kind": "task",
        "id": "t",
        "status": {
            "state": "input-required",
            "message": {"messageId": "m", "role": "agent", "parts": [waiting]},
        },
    }
    invocation = progress(task).invocation(ASKED, 0)

    assert found.waits_for[0].name == "input_required"
    assert invocation.waits_for == (FunctionCall(id="1", name="track", args={"order": 9}),)
    assert invocation.tool_calls == (ToolCall("track", {"order": 9}, None),)
    assert invocation.final_response is None


@pytest.mark.parametrize("data", [{}, {"name": 5, "args": []}, {"id": None}])
def test_calls_of_another_shape_are_calls_without_it(data: Any) -> None:
    found = progress(artifact("a", tool("function_call", **data)), status("completed"))
    assert found.invocation(ASKED, 0).tool_calls == (ToolCall(None, None, None),)
