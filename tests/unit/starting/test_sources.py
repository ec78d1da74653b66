"""Agents are found in code by its syntax, and nothing of it runs."""

from textwrap import dedent

import pytest

from ci_eval.starting.sources import FoundAgent, Sources, read_sources


@pytest.fixture
def read(tmp_path):
    """Write files, some of them code, and read what they show."""

    def write_and_read(files: dict[str, str]) -> Sources:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(dedent(text))
        return read_sources(tmp_path, sorted(files))

    return write_and_read


ADK = "root_agent = Agent(name='shop')\n"


def test_an_agent_of_adk_is_imported_from_the_folder_above_its_own(read):
    (agent,) = read({"agents/shop/agent.py": ADK, "agents/shop/__init__.py": ""}).agents

    assert agent == FoundAgent("adk", "shop", "agents/shop", "shop.agent", "root_agent", "agents")


def test_an_agent_within_packages_is_imported_from_above_the_outermost(read):
    files = {
        "src/app/__init__.py": "",
        "src/app/shop/__init__.py": "",
        "src/app/shop/agent.py": ADK,
    }

    (agent,) = read(files).agents

    assert (agent.target, agent.import_from) == ("app.shop.agent", "src")


def test_an_agent_at_the_top_is_a_module_of_its_own(read, tmp_path):
    (agent,) = read({"agent.py": ADK}).agents

    assert (agent.name, agent.folder, agent.target) == (tmp_path.name, "", "agent")


@pytest.mark.parametrize(
    ("code", "variable"),
    [
        ("root_agent: Agent = make()", "root_agent"),
        ("from .team import lead as root_agent", "root_agent"),
        (
            "try:\n    root_agent = fast()\nexcept ImportError:\n    root_agent = slow()",
            "root_agent",
        ),
        ("root_agent = a\napp = apps.App(name='x', root_agent=root_agent)", "app"),
        ("root_agent = a\napp = FastAPI()", "root_agent"),
    ],
)
def test_what_the_module_calls_the_agent_is_seen(read, code, variable):
    (agent,) = read({"shop/agent.py": code}).agents

    assert agent.variable == variable


@pytest.mark.parametrize(
    "code",
    ["app = FastAPI()", "def build():\n    root_agent = 1", "root_agent", "root_agent = (", "\0"],
)
def test_what_is_no_agent_of_adk_is_left(read, code):
    assert read({"shop/agent.py": code}) == Sources()


def test_an_agent_in_yaml_is_named_by_its_file(read):
    (agent,) = read({"agents/desk/root_agent.yaml": "name: desk"}).agents

    assert (agent.name, agent.target) == ("desk", "agents/desk/root_agent.yaml")


def test_the_parts_of_an_agent_are_no_agents_of_their_own(read):
    files = dict.fromkeys(("shop/agent.py", "shop/sub/refunds/agent.py", "shops/agent.py"), ADK)

    assert [each.folder for each in read(files).agents] == ["shop", "shops"]


def test_a_function_that_answers_is_found_the_surest_first(read):
    files = {
        "app/main.py": "def run(query): ...\n",
        "bot.py": "def chat(text, *, history, tone='kind'): ...\nasync def answer(message): ...\n",
    }

    found = read(files).agents

    assert [each.target for each in found] == ["bot:answer", "bot:chat", "app.main:run"]


@pytest.mark.parametrize("name", ["agent", "assistant", "bot", "chatbot", "app", "main"])
def test_modules_where_an_agent_often_is_are_looked_into(read, name):
    (agent,) = read({f"{name}.py": "def reply(message: str): ..."}).agents

    assert (agent.kind, agent.target) == ("python", f"{name}:reply")


@pytest.mark.parametrize(
    "code",
    [
        "def answer(): ...",
        "def answer(a, b): ...",
        "def answer(message, *, key): ...",
        "def answer(*messages): ...",
        "@app.post('/')\ndef answer(message): ...",
        "class Bot:\n    def answer(self): ...",
        "def run(argv): ...",
        "def reset(message): ...",
    ],
)
def test_a_function_that_takes_something_else_is_left(read, code):
    assert read({"bot.py": code}).agents == ()


@pytest.mark.parametrize("file", ["tests/bot.py", "my-bot/bot.py", "billing.py", "__init__.py"])
def test_a_function_in_a_module_that_cannot_be_meant_is_left(read, file):
    assert read({file: "def answer(message): ..."}).agents == ()


def test_other_frameworks_are_named_with_a_file(read):
    files = {"a/graph.py": "from langgraph.graph import StateGraph", "b.py": "import tenxgraph"}

    assert read(files).frameworks == (("LangGraph", "a/graph.py"), ("AgentFlow", "b.py"))


def test_a_relative_import_is_no_framework(read):
    assert read({"app/x.py": "from .crewai import y\nfrom . import dspy"}).frameworks == ()


def test_code_is_read_and_never_run(read, tmp_path):
    mark = tmp_path / "was-run"
    code = f"open({str(mark)!r}, 'w')\nimport langchain\nroot_agent = exit(1)\n"

    found = read({"shop/agent.py": code})

    assert found.agents
    assert not mark.exists()


def test_code_that_python_would_warn_of_is_read_in_silence(read):
    assert read({"shop/agent.py": ADK + "x = '\\d'\nassert (1, 'always')\n"}).agents


def test_a_file_that_is_gone_is_passed_over(read, tmp_path):
    read({"shop/agent.py": ADK})

    (agent,) = read_sources(tmp_path, ["gone.py", "gone/agent.py", "shop/agent.py"]).agents

    assert agent.folder == "shop"
