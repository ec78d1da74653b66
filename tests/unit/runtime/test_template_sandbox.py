"""Templates of users get plain data, little time and memory, and nothing else."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.agent_sessions import is_dead
from support.git_repositories import git_init
from support.slow_params import some
from support.traced_process import GET_TRACED, needs_tracing

from ci_eval.records.cases import Status
from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Totals
from ci_eval.runtime import template_sandbox
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.template_sandbox import (
    Template,
    TemplateError,
    TooLongError,
    plain,
    read_template,
)

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class Page:
    """What these templates see."""

    said: str = "@octocat <b>"
    items: tuple[str, ...] = ("one", "two")
    none: tuple[str, ...] = ()
    named: Any = None
    row: Any = None

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self.items)

    def method(self) -> str:
        """Not for templates."""
        return "called"


@dataclass(frozen=True)
class Row:
    """What `growth` of `_parts.md.j2` looks at."""

    max_growth: float
    summary: "Summary"


@dataclass(frozen=True)
class Summary:
    """A criterion whose values are to be low."""

    better: str = "lower"


PAGE = plain(Page(named={"ci/a b": 0.25}, row=Row(0.05, Summary())))


@pytest.fixture(autouse=True, scope="module")
def _limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template_sandbox, "CPU_S", 2)
        patch.setattr(template_sandbox, "WALL_S", 300)
        yield


def filled(source: str, *, page: Any = PAGE, most: int = 10_000) -> str:
    return Template(source, "own.md.j2").fill(page, most)


def refused(source: str) -> str:
    with pytest.raises(TemplateError) as caught:
        filled(source)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    some(
        [
            ("<i>{{ page.said }}</i>", "<i>@\u200boctocat &#60;b&#62;</i>"),
            ("{{ page.said | code }}", "`@octocat <b>`"),
            ("{{ page.said | safe }}", "@\u200boctocat &#60;b&#62;"),
            ("{{ page.said ~ '<' }}", "@\u200boctocat &#60;b&#62;&#60;"),
            ("{% for each in page.items %}{{ each }}.{% endfor %}", "one.two."),
            ("{{ page.count }} {{ page.named['ci/a b'] }}", "2 0.250"),
            ("{% set n = namespace(a=1) %}{% set n.a = 2 %}{{ n.a }}", "2"),
            ("{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(page.items[0]) }}", "[one]"),
            ("{% import '_parts.md.j2' as parts %}{{ parts.growth(page.row) }}", "≤&nbsp;+5.0%"),
        ],
        4,
    ),
)
def test_a_template_writes_what_the_page_has_escaped(source: str, text: str) -> None:
    assert filled(source) == text


def test_a_page_becomes_plain_data_with_what_its_records_know() -> None:
    totals = plain(Totals(cases=4, passed=3, failed=1))

    assert totals["record"]["pass_rate"] == 0.75
    assert totals["is"] is True
    assert plain({Status.PASSED: (Status.FAILED, None)}) == {"keys": {"passed": ["failed", None]}}
    assert "method" not in PAGE["record"]


@pytest.mark.parametrize(
    "source",
    some(
        [
            "{{ page.__class__ }}",
            "{{ page.method() }}",
            "{{ page | attr('__class__') }}",
            "{{ '{0.__class__}'.format(page) }}",
            "{{ range.__init__.__globals__ }}",
            "{% set page.said = 1 %}",
            "{{ page.items.append(1) }}",
            "{{ page }}",
            "{{ page.nope }}",
            "{{ page._truth }}",
            "{{ ''.__class__.mro() }}",
            "{{ page.items | map(attribute='__class__') | list | join }}",
            "{{ '%s' | format(page) | attr('__class__') }}",
            "{{ self.__init__ }}",
            "{{ page.named.update({1: 2}) }}",
            "{{ page.said.encode() }}",
            "{{ page.items }}",
            "{% if page.nope %}{% endif %}",
        ],
        9,
    ),
)
def test_a_template_gets_to_nothing_but_data(source: str) -> None:
    assert refused(source)


def test_what_there_is_not_is_named() -> None:
    assert refused("{{ page.nope }}") == "'record object' has no attribute 'nope'"


@pytest.mark.parametrize("name", some(["lipsum", "os", "report", "cycler", "joiner", "debug"], 3))
def test_there_is_only_the_page(name: str) -> None:
    assert refused(f"{{{{ {name}() }}}}") == f"unknown variable {name!r}; only 'page' is available"


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("include '{}'", "/etc/passwd"),
        ("import '{}' as x", "../../../etc/passwd"),
        ("extends '{}'", "judge/../_parts.md.j2"),
        ("from '{}' import x", "own.md.j2"),
    ],
)
def test_a_template_takes_from_no_file_but_ours(tag: str, name: str) -> None:
    assert refused("{% " + tag.format(name) + " %}").startswith(f"there is no template {name!r}")


@pytest.mark.slow
def test_a_template_names_what_it_takes_from() -> None:
    source = "{% set name = '/etc/' ~ 'passwd' %}{% include name %}"

    assert refused(source) == "imports a template whose name is not a literal"
    assert refused("{% include ['/etc/passwd'] %}").startswith("there is no template")


@pytest.mark.parametrize(
    "source",
    some(
        [
            "{{ 'a' * 10**9 }}",
            "{{ page.said * 10**9 }}",
            "{{ '%1000000000d' % 1 }}",
            "{{ page.said | center(10**9) }}",
            "{{ (['a'] * 10**9) | join }}",
        ],
        2,
    ),
)
def test_memory_has_an_end(source: str) -> None:
    assert refused(source) == "takes more than 512 MiB"


NESTED = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.slow
@pytest.mark.parametrize("source", [NESTED, "{{ 3 ** (10**9) }}"])
def test_time_has_an_end(source: str) -> None:
    assert refused(source) == "used more than 2 s of CPU time"


def test_a_tracer_cannot_keep_the_end_of_a_template_back(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_tracing()
    monkeypatch.setattr(template_sandbox, "_KILL_TIMEOUT_S", 0.1)
    code = GET_TRACED + "print(tracer.pid, flush=True); tracer.wait()"
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdin=pipe, stdout=pipe, start_new_session=True
    )
    assert child.stdout
    tracer = int(child.stdout.readline())
    template_sandbox._end(child)
    assert child.returncode is None
    assert not is_dead(tracer)  # it went on before the tracer's end
    os.kill(tracer, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def test_a_template_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_sandbox, "CPU_S", 300)
    monkeypatch.setattr(template_sandbox, "WALL_S", 0.5)

    with pytest.raises(TemplateError, match=r"^timed out after 0\.5 s$"):
        filled(NESTED, most=10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recurses without end"),
        ("{{ " + "(" * 50_000 + " }}", "recurses without end"),
        ("{{ range(10**9) }}", "Range too big"),
    ],
)
def test_depth_and_ranges_have_an_end(source: str, message: str) -> None:
    assert message in refused(source)
    assert not refused(source).endswith(".")


@pytest.mark.slow
def test_a_text_has_an_end() -> None:
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}aaaa{% endfor %}{% endfor %}"
    with pytest.raises(TooLongError):
        filled(endless, most=100_000)
    assert filled("12345", most=5) == "12345"
    with pytest.raises(TooLongError):
        filled("123456", most=5)


@pytest.mark.parametrize(
    ("source", "line"),
    [("\n\n{{ page.nope }}", 3), ("\n{% if %}", 2), ("\n{{ 1 | nope }}", 2), ("a\n{{ [] }}", 2)],
)
def test_an_error_tells_its_line(source: str, line: int) -> None:
    with pytest.raises(TemplateError) as caught:
        filled(source)
    assert caught.value.line == line


# --- Files of the repository ------------------------------------------------------------------


def problem(folder: Path, given: str) -> str:
    context = RunContext(env={}, root=folder, now=lambda: 0.0)
    with pytest.raises(UsageError) as caught:
        read_template(given, context)
    return str(caught.value)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git_init(tmp_path / "repo")
    (tmp_path / "outside.j2").write_text("{{ page.said }}")
    (tmp_path / "repo/link.j2").symlink_to(tmp_path / "outside.j2")
    return tmp_path / "repo"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nope.j2", "nope.j2: no such file"),
        (".git", ".git: is in a .git folder"),
        (
            "../outside.j2",
            "../outside.j2: is outside of the repository, which is not allowed for a template",
        ),
        (
            "/etc/passwd",
            "/etc/passwd: is outside of the repository, which is not allowed for a template",
        ),
        ("link.j2", "link.j2: is a symlink out of the repository"),
    ],
)
def test_a_template_is_a_file_of_the_repository(repository: Path, given: str, message: str) -> None:
    assert problem(repository, given) == message


def test_a_template_that_is_wrong_is_refused_with_its_line(repository: Path) -> None:
    (repository / "own.j2").write_text("fine\n{% nope %}")

    found = "own.j2:2: the template cannot be rendered: Encountered unknown tag 'nope'"
    assert problem(repository, "own.j2") == found


def test_a_template_that_is_too_long_is_refused(repository: Path) -> None:
    (repository / "own.j2").write_text("a" * (256 * 1024 + 1))

    assert problem(repository, "own.j2").endswith("the limit for a template")
