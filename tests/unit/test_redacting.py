"""What an environment says is secret is written down nowhere."""

import pytest

from ci_eval.records import Content, FunctionCall, IntermediateData, Invocation
from ci_eval.redacting import Secrets
from ci_eval.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")


def trace(said: str, **more: object) -> Trace:
    turn = Invocation(
        user_content=Content.of_text("Hi", role="user"),
        final_response=Content.of_text(said, role="model"),
        intermediate_data=IntermediateData(
            tool_uses=(FunctionCall(name="look", args={"token": said}),)
        ),
    )
    return Trace.model_validate({"key": KEY, "invocations": (turn,), **more})


def test_a_secret_is_replaced_by_the_name_of_its_variable_wherever_it_stands() -> None:
    secrets = Secrets({"API_KEY": "sk-12345678"})
    found = secrets.cleaned(trace("It is sk-12345678.", output="sk-12345678 sk-12345678"))

    assert found.invocations[0].response == "It is [API_KEY]."
    assert found.invocations[0].tool_calls[0].args == {"token": "It is [API_KEY]."}
    assert found.output == "[API_KEY] [API_KEY]"


def test_what_holds_no_secret_stays_the_very_same() -> None:
    held = trace("Nothing.")

    assert Secrets({"API_KEY": "sk-12345678"}).cleaned(held) is held
    assert Secrets({}).cleaned(held) is held


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "short"),
        ("HOME", "nothing-secret"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/us/key.json"),
        ("SSH_KEY", "~/.ssh/id_rsa"),
    ],
)
def test_placeholders_paths_and_other_variables_are_no_secrets(name: str, value: str) -> None:
    held = trace(f"It is {value}.")

    assert Secrets({name: value}).cleaned(held) is held


def test_a_secret_that_holds_another_is_found_first() -> None:
    secrets = Secrets({"USER_TOKEN": "12345678", "DB_PASSWORD": "x-12345678-y"})

    assert secrets.cleaned(trace("x-12345678-y")).invocations[0].response == "[DB_PASSWORD]"


def test_each_line_of_a_secret_of_several_is_one() -> None:
    secrets = Secrets({"PRIVATE_KEY": "-----BEGIN-----\nMIIEvQIBADAN\n-----END-----"})

    assert secrets.cleaned(trace("MIIEvQIBADAN")).invocations[0].response == "[PRIVATE_KEY]"


@pytest.mark.parametrize(
    "value", ['a"b\\c"d"e"f', "schlüssel-äöü", "tab\tand more", "{json: 1234}"]
)
def test_a_secret_is_found_however_json_writes_it(value: str) -> None:
    found = Secrets({"A_SECRET": value}).cleaned(trace(f"({value})"))

    assert found.invocations[0].response == "([A_SECRET])"
