"""Text files and YAML: what is read, and how what is not is refused."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.git_repositories import git_init

from ci_eval.records.errors import UsageError
from ci_eval.runtime import path_checks
from ci_eval.runtime.isolation import Account
from ci_eval.runtime.path_checks import contained, refuse_links_out
from ci_eval.text.yaml_files import (
    MAX_CONFIG,
    MAX_YAML_DEPTH,
    Document,
    dotted,
    parse_yaml,
    read_text,
    read_yaml,
    reading,
)

NOT_ROOT = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="nothing is unreadable to root"
)


def value(text: str) -> Any:
    return parse_yaml(text, shown="c.yaml").value


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        action()
    return str(caught.value)


def yaml_refusal(text: str) -> str:
    return refusal(lambda: parse_yaml(text, shown="c.yaml"))


# --- Text -----------------------------------------------------------------------------------


def test_text_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("é\r\n\u2028x".encode())
    assert read_text(path, shown="a.txt") == "é\r\n\u2028x"


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfx")
    assert read_text(path, shown="a.txt") == "x"


def test_a_missing_file_is_named_as_the_user_names_it(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "a.txt"
    assert refusal(lambda: read_text(path, shown="a.txt")) == "a.txt: no such file"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert refusal(lambda: read_text(tmp_path, shown="evals")) == "evals: is not a file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(lambda: read_text(tmp_path / "pipe", shown="pipe")) == "pipe: is not a file"


@NOT_ROOT
def test_an_unreadable_file_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch(mode=0)
    said = refusal(lambda: read_text(path, shown="a.txt"))
    assert said == "a.txt: cannot be read: Permission denied"


def test_a_name_that_is_too_long_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 5000)
    said = refusal(lambda: read_text(path, shown="a"))
    assert said == f"a: cannot be read: {os.strerror(36)}"


def test_what_fails_while_it_is_read_is_said_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()

    def read() -> None:
        with reading(path, shown="a.txt"):
            raise OSError(5, "Input/output error")

    assert refusal(read) == "a.txt: cannot be read: Input/output error"


def test_a_file_that_is_too_long_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x" * (MAX_CONFIG + 1))
    said = refusal(lambda: read_text(path, shown="a.txt", most=MAX_CONFIG))
    assert said == "a.txt: is larger than 1 MiB, the limit for this kind of file"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a\nb\n\xff", "a.txt:3: byte 0xff is not UTF-8"),
        (b"a\n\xc3\nb", "a.txt:2: byte 0xc3 is not UTF-8"),
        (b"a\n\xed\xa0\x80", "a.txt:2: byte 0xed is not UTF-8"),  # half of a surrogate pair
        (b"a\n\xe2\x82", "a.txt:2: byte 0xe2 is not UTF-8"),  # cut off
        ("a\n".encode("utf-16"), "a.txt:1: byte 0xff is not UTF-8; the file seems to be UTF-16"),
        (b"x" * (1 << 20) + b"\n\xff", "a.txt:2: byte 0xff is not UTF-8"),
        (b"x" * ((1 << 20) - 1) + "é".encode() + b"\n\xff", "a.txt:2: byte 0xff is not UTF-8"),
    ],
)
def test_the_line_of_a_byte_that_is_not_utf8_is_named(
    tmp_path: Path, data: bytes, said: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    assert refusal(lambda: read_text(path, shown="a.txt")) == said


# --- Where files may lie --------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    git_init(root)
    (root / "suite").mkdir()
    (tmp_path / "secret").write_text("s")
    return root


def test_a_path_is_taken_from_the_root(repository: Path) -> None:
    assert contained(repository / "suite", "../a.json") == repository / "a.json"


def test_a_path_that_says_it_leads_out_may(repository: Path, tmp_path: Path) -> None:
    assert contained(repository, "../secret") == tmp_path / "secret"
    assert contained(repository, str(tmp_path / "secret")) == tmp_path / "secret"


def test_a_link_inside_the_repository_is_followed(repository: Path) -> None:
    (repository / "suite" / "link").symlink_to("../a.json")
    found = contained(repository / "suite", "link")
    assert found == repository / "suite" / "link"


def test_a_link_that_leads_out_of_the_repository_is_refused(repository: Path) -> None:
    (repository / "suite" / "link").symlink_to("../../secret")
    said = refusal(lambda: contained(repository / "suite", "link"))
    assert said == "link: is a symlink out of the repository"


def test_a_folder_that_leads_out_is_refused_with_all_in_it(
    repository: Path, tmp_path: Path
) -> None:
    (repository / "out").symlink_to(tmp_path)
    said = refusal(lambda: contained(repository, "out/secret"))
    assert said == "out/secret: is a symlink out of the repository"


@pytest.mark.parametrize("given", [".git/config", "suite/../.GIT/config", "deps/lib/.git/config"])
def test_nothing_is_read_of_gits_own_folders(repository: Path, given: str) -> None:
    assert refusal(lambda: contained(repository, given)) == f"{given}: is in a .git folder"
    git_init(repository / "deps/lib")
    (repository / "link").symlink_to(repository / ".git")
    said = refusal(lambda: contained(repository, "link/config"))
    assert said == "link/config: is in a .git folder"
    said = refusal(lambda: refuse_links_out(str(repository / "link")))
    assert said == f"{repository}/link: is in a .git folder"


def test_in_the_container_no_path_of_a_configuration_leads_out(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_checks, "account", lambda: Account(58734, 58734, "/home/a"))
    assert contained(repository / "suite", "../a.json") == repository / "a.json"
    for given in ("../secret", "/proc/self/environ", "/github/file_commands/add_path"):
        said = refusal(lambda path=given: contained(repository, path))
        assert said.startswith(f"{given}: is outside of the repository")
    refuse_links_out(str(repository.parent / "report"))  # who starts the command says where to


def test_nothing_is_written_in_a_folder_that_an_agent_made(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "made/deep").mkdir(parents=True)
    monkeypatch.chdir(repository)
    made = repository / "made"
    monkeypatch.setattr(path_checks, "belongs_to_agents", lambda path: path == made)
    assert contained(repository, "made/deep/x") == made / "deep/x"
    for refused in (
        lambda: contained(repository, "made/deep/x", written=True),
        lambda: refuse_links_out("made/deep/x"),
    ):
        assert refusal(refused).endswith(
            "x: is in a folder created by an agent, which could redirect it"
        )
    assert contained(repository, "suite/x", written=True) == repository / "suite/x"


def test_outside_a_repository_the_folder_of_the_configuration_is_the_border(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "link").symlink_to(tmp_path / "a.json")
    said = refusal(lambda: contained(tmp_path / "suite", "link"))
    assert said == "link: is a symlink out of the repository"


def test_a_root_with_dots_in_it_belongs_to_the_repository_it_leads_to(repository: Path) -> None:
    (repository / "link").symlink_to("../secret")
    with pytest.raises(UsageError):
        contained(repository / "suite" / "..", "link")


def test_a_link_to_itself_is_no_file(repository: Path) -> None:
    (repository / "loop").symlink_to("loop")
    said = refusal(lambda: read_text(contained(repository, "loop"), shown="loop"))
    assert said.startswith("loop: ")  # pathlib changed its mind about where to notice


def test_what_cannot_be_a_path_is_refused(repository: Path) -> None:
    said = refusal(lambda: contained(repository, "a\0b"))
    assert said == r"a\x00b: is not a path: it contains U+0000"


# --- YAML: values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("off", "off"),
        ("yes", "yes"),
        ("N", "N"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("1:30", "1:30"),
        ("2024-01-31", "2024-01-31"),
        ("1_000", "1_000"),
        ("012", 12),
        ("0o14", 12),
        ("0xC", 12),
        ("-12", -12),
        ("+.5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1.5.2", "1.5.2"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 1", 1.0),
        ('"\\u263a"', "\u263a"),
        ("=", "="),
        ("'<<'", "<<"),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(word: str, meant: object) -> None:
    assert value(f"a: {word}\n") == {"a": meant}
    assert type(value(f"a: {word}\n")["a"]) is type(meant)


def test_a_yaml_1_1_header_changes_no_words() -> None:
    assert value("%YAML 1.1\n---\na: off\n") == {"a": "off"}


def test_json_is_yaml() -> None:
    assert value('{"a": [1, "x\\u00e9", null, true]}') == {"a": [1, "xé", None, True]}


def test_keys_are_words_whatever_they_look_like() -> None:
    assert value("1: a\ntrue: b\n~: c\n1.0: d\n") == {"1": "a", "true": "b", "~": "c", "1.0": "d"}


def test_an_empty_document_is_nothing() -> None:
    assert value("") is None
    assert value("# a comment\n") is None


def test_lines_may_end_as_on_windows() -> None:
    document = parse_yaml("a: 1\r\nb:\r\n  c: 2\r\n", shown="c.yaml")
    assert document.value == {"a": 1, "b": {"c": 2}}
    assert document.line(("b", "c")) == 3


def test_anchors_stand_for_what_they_name() -> None:
    assert value("a: &x [1]\nb: *x\n") == {"a": [1], "b": [1]}


def test_merged_keys_give_way_to_those_that_are_there() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  z: 3\n  <<: [*a, *b]\n"
    assert value(text)["c"] == {"x": 1, "y": 1, "z": 3}


def test_merging_merges_what_was_merged() -> None:
    text = "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}\n"
    assert value(text)["c"] == {"x": 1, "y": 2}


# --- YAML: refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "c.yaml:3: duplicate key 'a'"),
        ("a:\n  b:\n    c: 1\n    c: 2\n", "c.yaml:4: duplicate key 'c'"),
        ("a: {b: 1,\n b: 2}\n", "c.yaml:2: duplicate key 'b'"),
        ("'1': a\n1: b\n", "c.yaml:2: duplicate key '1'"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  <<: *x\n", "c.yaml:4: duplicate key '<<'"),
        ("a:\n  <<: 1\n", "c.yaml:2: '<<' takes a mapping, or a list of them"),
        ("a:\n  <<: [{b: 1}, 2]\n", "c.yaml:2: '<<' takes a mapping, or a list of them"),
        ("? [a]\n: 1\n", "c.yaml:1: a key must be text, not a list or a mapping"),
        ("a: <<\n", "c.yaml:1: the tag '!!merge' is not supported"),
        ("a: !!int x\n", "c.yaml:1: 'x' is not a valid int"),
        ("a: !!float x\n", "c.yaml:1: 'x' is not a valid float"),
        ("a: !!bool off\n", "c.yaml:1: 'off' is not a valid bool"),
        ("a: !!null x\n", "c.yaml:1: 'x' is not a valid null"),
        ("a: !!binary aGk=\n", "c.yaml:1: the tag '!!binary' is not supported"),
        ("a: !!python/name:os.system x\n", "c.yaml:1: the tag '!!python/name:os.system' is"),
        ("a: !mine {b: 1}\n", "c.yaml:1: the tag '!mine' is not supported"),
        ("a: !!set {b, c}\n", "c.yaml:1: the tag '!!set' is not supported"),
        ("a: !!str [b]\n", "c.yaml:1: the tag '!!str' is not supported"),
        ("a: .inf\n", "c.yaml:1: '.inf' is not a finite number"),
        ("a: -.Inf\n", "c.yaml:1: '-.Inf' is not a finite number"),
        ("a: .nan\n", "c.yaml:1: '.nan' is not a finite number"),
        ("a: 1e999\n", "c.yaml:1: '1e999' is not a finite number"),
        (f"a: {'9' * 5000}\n", "c.yaml:1: the number is too long"),
        (f"a: 0x{'f' * 298}\n", "c.yaml:1: the number is too long"),
        ("a:\n\tb: 1\n", "c.yaml:2: is not YAML: a tab, where YAML needs spaces"),
        ("a: [1\nb: 2\n", "c.yaml:2: is not YAML: while parsing a flow sequence"),
        ("a: *x\n", "c.yaml:1: is not YAML: found undefined alias"),
        ("a: 1\n---\nb: 2\n", "c.yaml:2: is not YAML: expected a single document"),
        ('a: "\\ud83d"\n', "c.yaml:1: is not YAML: while parsing a quoted scalar found invalid"),
        ("ä: 1\nb: \0\n", "c.yaml:2: the character U+0000 is not allowed in YAML"),
        ("ä: 1\nb: \x07\n", "c.yaml:2: the character U+0007 is not allowed in YAML"),
        ("a: \ufffe\n", "c.yaml:1: the character U+FFFE is not allowed in YAML"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(text: str, said: str) -> None:
    assert yaml_refusal(text).startswith(said)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "!x [", "&a ["])
def test_deep_nesting_is_refused_before_it_overflows_the_parser(opening: str) -> None:
    assert yaml_refusal(opening * 300_000) == "c.yaml:1: is nested too deeply"


def test_nesting_is_refused_at_the_line_where_it_gets_too_deep() -> None:
    lines = "".join(f"{' ' * depth}a:\n" for depth in range(MAX_YAML_DEPTH + 10))
    assert (
        yaml_refusal(lines + " " * 200 + "b")
        == f"c.yaml:{MAX_YAML_DEPTH + 1}: is nested too deeply"
    )


def test_nesting_up_to_the_limit_is_read() -> None:
    found = value("[" * MAX_YAML_DEPTH + "]" * MAX_YAML_DEPTH)
    for _ in range(MAX_YAML_DEPTH - 1):
        (found,) = found
    assert found == []


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: &a {<<: *a}"])
def test_what_holds_itself_is_refused(text: str) -> None:
    assert yaml_refusal(text) == "c.yaml:1: is nested too deeply or contains itself"


def test_anchors_inside_of_anchors_nest_as_well() -> None:
    chain = "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}]\n" for n in range(1, 3000))
    assert yaml_refusal(chain).endswith(": is nested too deeply or contains itself")


def test_a_small_file_that_unfolds_to_a_huge_one_is_refused() -> None:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    for n in range(1, 12):
        bomb += f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n"
    assert yaml_refusal(bomb).endswith(": expands to more than 200000 values")


def test_a_long_configuration_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("#" * (MAX_CONFIG + 1))
    said = refusal(lambda: read_yaml(path, shown="c.yaml"))
    assert said == "c.yaml: is larger than 1 MiB, the limit for this kind of file"


# --- Places ---------------------------------------------------------------------------------

PLACES = """\
a:
  b: [1,
    2]
  c:
    - x: 1
    - {y: 2,
       z: 3}
d: &d
  e: 1
f:
  <<: *d
"""


@pytest.mark.parametrize(
    ("loc", "line"),
    [
        ((), 1),
        (("a",), 1),
        (("a", "b"), 2),
        (("a", "b", 1), 3),
        (("a", "c", 0), 5),
        (("a", "c", 1, "z"), 7),
        (("d", "e"), 9),
        (("f", "e"), 10),  # what was merged has no line there
        (("a", "nothing", "further"), 1),
        (("a", "b", "no key"), 2),
        (("d", "e", 0), 9),
    ],
)
def test_every_value_has_its_line(loc: tuple[str | int, ...], line: int) -> None:
    assert parse_yaml(PLACES, shown="c.yaml").line(loc) == line


def test_a_problem_names_file_line_and_path() -> None:
    document = parse_yaml(PLACES, shown="c.yaml")
    assert str(document.problem("is odd", ("a", "c", 1, "z"))) == "c.yaml:7: a.c[1].z: is odd"
    assert str(Document(None, "c.yaml").problem("is empty")) == "c.yaml:1: is empty"
    assert document.problem("is odd", severity="warning").severity == "warning"


def test_a_long_key_is_cut() -> None:
    assert dotted(("a", 0, "b")) == "a[0].b"
    assert dotted(("k" * 500, "b")) == "k" * 100 + "….b"
    assert dotted(()) == ""
