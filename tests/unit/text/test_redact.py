"""What an environment says is secret is written down nowhere."""

import base64
import contextlib
import io
import json
import sys
import traceback
from hashlib import sha384

import pytest

from ci_eval.records.cases import Content, FunctionCall, IntermediateData, Invocation, Json, Status
from ci_eval.records.results import Score, TrialResult
from ci_eval.records.trials import Failure, Trace, TrialKey
from ci_eval.text.redact import Secrets, passed_on, print_none_of, printing

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


def test_a_text_that_was_read_before_is_replaced_too() -> None:
    held = trace("It is sk-12345678.")
    assert held.invocations[0].response == "It is sk-12345678."

    found = Secrets({"API_KEY": "sk-12345678"}).cleaned(held)

    assert found.invocations[0].response == "It is [API_KEY]."


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
        ("GIT_AUTHOR_NAME", "nobody-special"),
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


# --- Where secrets are ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("INPUT_GITHUB-TOKEN", "ghs_12345678", "ghs_12345678"),
        ("ACTIONS_ID_TOKEN_REQUEST_URL", "https://example.com/abc", "https://example.com/abc"),
        ("AWS_SECRET_ACCESS_KEY", "/aBcDeFgHiJkLmNoPqRsTuVwXyZ01", "/aBcDeFgHiJkLmNoPqRsTuVwXyZ01"),
        ("HTTPS_PROXY", "http://user:pa%20ss-1234@proxy:3128", "pa ss-1234"),
        ("DATABASE_URL", "postgres://me:s3cretpw@db/shop", "s3cretpw"),
        ("GIT_CONFIG_VALUE_0", "AUTHORIZATION: basic eC1hY2Nlc3M6MTIz", "eC1hY2Nlc3M6MTIz"),
        ("Proxy-Authorization", "Bearer literal-1234", "literal-1234"),
        ("DB_PASS", "hunter2-hunter2", "hunter2-hunter2"),
        ("MYSQL_PWD", "hunter2-hunter2", "hunter2-hunter2"),
        ("GH_PAT", "ghp_12345678", "ghp_12345678"),
        ("SLACK_WEBHOOK_URL", "https://example.com/T0/B1", "https://example.com/T0/B1"),
        ("AZURE_CONNECTION_STRING", "Account=a;Pin=1234", "Account=a;Pin=1234"),
        ("SA_CREDENTIALS", '{"type": "x", "private_key": "a\\nfirst-line\\nb"}', "first-line"),
    ],
)
def test_a_secret_is_known_by_its_name_or_by_where_it_stands(
    name: str, value: str, secret: str
) -> None:
    assert Secrets({name: value}).text(f"It is {secret}!") == f"It is [{name}]!"


@pytest.mark.parametrize(
    "name", ["GIT_AUTHOR_NAME", "SHOP_URL", "PATHS", "PWD", "CI_PATCH", "PASS_RATE"]
)
def test_what_has_another_name_is_none(name: str) -> None:
    assert not Secrets({name: "https://example.com/12345678"})


def test_what_is_handed_on_is_a_secret_unless_it_is_a_path_or_an_address() -> None:
    env = {"A": "visitor-4711", "B": "/home/us/some.file", "C": "https://example.com", "D": ""}

    assert list(passed_on(env, [*env, "E"])) == [("A", "visitor-4711")]


def test_of_values_that_overlap_nothing_is_left() -> None:
    secrets = Secrets({"A_KEY": "abcdefgh1234", "B_KEY": "1234ijklmnop"})

    assert secrets.text("<abcdefgh1234ijklmnop>") == "<[A_KEY]>"


# --- Where they are found ---------------------------------------------------------------------

SPLIT = Secrets({"API_KEY": "sk-12345678"})


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ({"sk-12345678": 1}, {"[API_KEY]": 1}),
        ({"sk-12345678": 1, "c2stMTIzNDU2Nzg=": 2}, {"[API_KEY]": 1, "[API_KEY]'": 2}),
        ({"head": "sk-12", "tail": "345678"}, {"head": "[API_KEY]", "tail": ""}),
        ({"sk-123": "45678"}, {"[API_KEY]": ""}),
        (list("sk-12345678."), ["[API_KEY]", *[""] * 10, "."]),
        (
            [["so: sk-1"], {"n": 7}, {"x": ["2345678!"]}],
            [["so: [API_KEY]"], {"n": 7}, {"x": ["!"]}],
        ),
        ({"a": [True, None, 1.5, "sk"]}, {"a": [True, None, 1.5, "sk"]}),
    ],
)
def test_a_secret_is_found_in_keys_and_split_over_values(value: Json, cleaned: Json) -> None:
    held = Trace(key=KEY, final_state={"state": value})

    assert SPLIT.cleaned(held).final_state == {"state": cleaned}


def test_a_number_may_be_a_secret() -> None:
    found = Secrets({"A_TOKEN": "1234567890"}).cleaned(
        Trace(key=KEY, final_state={"pin": 1234567890, "other": 1234567891})
    )

    assert found.final_state == {"pin": "[A_TOKEN]", "other": 1234567891}


def test_names_of_cases_and_messages_of_errors_are_cleaned() -> None:
    held = Trace(
        key=KEY.model_copy(update={"case": "case sk-12345678"}),
        error=Failure(kind="raised", message="401 for sk-12345678"),
    )
    found = SPLIT.cleaned(held)

    assert found.key.case == "case [API_KEY]"
    assert found.error == Failure(kind="raised", message="401 for [API_KEY]")


@pytest.mark.parametrize("value", ["invocations", "regressed", "higher", "informational"])
def test_a_secret_that_is_a_word_of_ours_breaks_no_record(value: str) -> None:
    score = Score(
        name=value,
        criterion="ci/c",
        status=Status.PASSED,
        value=1.0,
        better="higher",
        threshold=0.5,
    )
    result = TrialResult(key=KEY, status=Status.PASSED, scores=(score,))
    found = Secrets({"SORT_KEY": value}).cleaned(result)

    assert TrialResult.model_validate_json(found.model_dump_json()) == found
    assert found.scores[0].better == "higher"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (
            f"{'x' * 100} sk-live-0123\n[28302 characters left out]\n6789abcdef {'y' * 9}",
            f"{'x' * 100} [API_KEY]\n[28302 characters left out]\n[API_KEY] {'y' * 9}",
        ),
        (f"{'x' * 100} sk-live-0…", f"{'x' * 100} [API_KEY]…"),
        (f"{'x' * 100} sk-live-0", f"{'x' * 100} [API_KEY]"),
        (f"9abcdef {'x' * 100}", f"9abcdef {'x' * 100}"),  # 7 characters
        (f"89abcdef {'x' * 100}", f"[API_KEY] {'x' * 100}"),
        (f"{'x' * 100} sk-live-0 and more", f"{'x' * 100} sk-live-0 and more"),
    ],
)
def test_what_is_left_of_a_secret_where_a_text_was_cut_is_found(text: str, cleaned: str) -> None:
    assert Secrets({"API_KEY": "sk-live-0123456789abcdef"}).text(text) == cleaned


@pytest.mark.slow
def test_a_hundred_secrets_and_a_long_text_take_as_many_steps_as_there_are_secrets() -> None:
    secrets = Secrets(
        {f"S{number}_KEY": f"{number:03}-secret-{number:03}" for number in range(100)}
    )
    text = "".join(f"{number % 100:03}-secret-{number % 100:03} " for number in range(20_000))

    assert "secret" not in secrets.text(text * 3)


def a_key(lines: int = 26) -> str:
    """Return a private key of that many lines."""
    body = (base64.b64encode(sha384(bytes([number])).digest()).decode() for number in range(lines))
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"])


def test_of_a_key_all_lines_are_secret_but_those_that_every_key_has() -> None:
    key = a_key()
    secrets = Secrets({"A_KEY": key})

    first, *body, last = key.splitlines()
    assert [secrets.text(f"<{line}>") for line in body] == ["<[A_KEY]>"] * len(body)
    assert secrets.text(f"{first} {last}") == f"{first} {last}"
    assert secrets.text(json.dumps(key).encode().hex()).count("[A_KEY]") == len(body)
    for written in (key, json.dumps(key)[1:-1], base64.encodebytes(key.encode()).decode().strip()):
        assert secrets.text(f"<{written}>") == "<[A_KEY]>"


MIB = 1 << 20
KEY_AND_TOKEN = Secrets({"A_KEY": a_key(), "A_TOKEN": "ghs_0123456789abcdefghij"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "made_of",
    [
        "\\",
        "%25",
        "&amp;",
        "\x1b",
        "\x1b]",
        "\x1b[0",
        "\u200b",
        "&#0",
        "\\u00",
        "\\ud83d",
        " \n",
        "\u5b57",
        "\u2026",
        "[9 ",
        "aa:",
        "0x",
        "aa 0x",
        "\\xaaaaaaaa",
        "a",
    ],
)
def test_a_megabyte_that_looks_escaped_takes_one_pass(made_of: str) -> None:
    # Looking at it again from each place would take until tomorrow.
    many = made_of * (MIB // len(made_of.encode()))
    text = f"\u2026 {many} ghs_0123456789abcdefghij!"

    assert KEY_AND_TOKEN.text(text) == text.replace("ghs_0123456789abcdefghij", "[A_TOKEN]")


@pytest.mark.slow
def test_a_megabyte_of_the_pieces_that_are_looked_for_takes_one_pass() -> None:
    body = a_key().splitlines()[1:-1]
    pieces = "".join(base64.b64encode(line[1:-1].encode()).decode()[2:-3] for line in body)
    text = (pieces + "".join(line[:-1] for line in body)) * 300

    assert len(text) > MIB
    assert KEY_AND_TOKEN.text(f"{text} ghs_0123456789abcdefghij").endswith(" [A_TOKEN]")


# --- What is printed --------------------------------------------------------------------------


def test_nobody_prints_a_secret_to_either_stream(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with printing({"API_KEY": "sk-12345678"}):
        sys.stdout.write("out sk-12345678\n")
        sys.stderr.writelines(["err sk-1", "2345678\n"])
        with contextlib.redirect_stdout(sys.stderr):
            sys.stdout.write("moved sk-12345678\n")
        traceback.print_exception(ValueError("of sk-12345678"))
    out, err = capsys.readouterr()

    assert out == "out [API_KEY]\n"
    assert err.startswith("err [API_KEY]\nmoved [API_KEY]\n")
    assert err.endswith("ValueError: of [API_KEY]\n")
    assert "12345678" not in err
    assert (sys.stdout, sys.stderr) == before


def test_what_is_written_piece_by_piece_is_printed_when_its_line_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with printing({"API_KEY": "sk-12345678"}):
        for piece in ("it is ", "sk-12", "345", "678"):
            sys.stdout.write(piece)
        assert capsys.readouterr().out == ""
        sys.stdout.write("!\nnext")
        assert capsys.readouterr().out == "it is [API_KEY]!\n"
        sys.stdout.flush()
        assert capsys.readouterr().out == "next"
        sys.stderr.write("the end sk-123")
        sys.stderr.write("45678")
    assert capsys.readouterr() == ("", "the end [API_KEY]")


def test_what_comes_to_be_known_as_secret_is_not_printed_from_then_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with printing({}):
        sys.stdout.write("sk-12345678\n")
        print_none_of(Secrets({"API_KEY": "sk-12345678"}))
        print_none_of(Secrets({"API_KEY": "sk-12345678", "SHOP": "sk-none-of-them"}))
        sys.stdout.write("sk-12345678 sk-none-of-them\n")
    assert capsys.readouterr().out == "sk-12345678\n[API_KEY] sk-none-of-them\n"
    print_none_of(Secrets({"API_KEY": "sk-12345678"}))  # streams that are not ours stay as they are


@pytest.mark.parametrize(
    ("encoding", "said"), [("ascii", rb"\u2714 \xb10"), ("latin-1", b"\\u2714 \xb10")]
)
def test_what_an_encoding_lacks_is_escaped(
    monkeypatch: pytest.MonkeyPatch, encoding: str, said: bytes
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    with printing({}):
        sys.stdout.write("\u2714 \xb10")
        sys.stdout.flush()
    assert written.getvalue() == said
