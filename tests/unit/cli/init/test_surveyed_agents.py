"""Agents are found in code by its syntax, and nothing of it runs."""

import json
from textwrap import dedent

import pytest

from ci_eval.cli.init.surveyed_agents import FoundAgent, Sources, read_sources


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


def test_an_agent_of_adk_is_named_by_its_folder(read):
    (agent,) = read({"agents/shop/agent.py": ADK, "agents/shop/__init__.py": ""}).agents

    assert agent == FoundAgent("adk", "shop", "agents/shop", "agents/shop")
    assert agent.label == "the ADK agent in agents/shop"


def test_an_agent_at_the_top_is_in_this_folder(read, tmp_path):
    (agent,) = read({"agent.py": ADK}).agents

    assert (agent.name, agent.folder, agent.target) == (tmp_path.name, "", ".")
    assert agent.label == "the ADK agent in agent.py"


@pytest.mark.parametrize(
    "code",
    [
        "root_agent: Agent = make()",
        "from .team import lead as root_agent",
        "try:\n    root_agent = fast()\nexcept ImportError:\n    root_agent = slow()",
        "app = apps.App(name='x', root_agent=build())",
        "root_agent = a\napp = FastAPI()",
        "import langgraph\ngraph = builder.compile()\nroot_agent = LangGraphAgent(graph=graph)",
    ],
)
def test_an_agent_of_adk_is_what_the_module_calls_root_agent_or_an_app_of_adk(read, code):
    (agent,) = read({"shop/agent.py": code}).agents

    assert (agent.kind, agent.target) == ("adk", "shop")


@pytest.mark.parametrize(
    "code",
    ["app = FastAPI()", "def build():\n    root_agent = 1", "root_agent", "root_agent = (", "\0"],
)
def test_what_is_no_agent_of_adk_is_left(read, code):
    assert read({"shop/agent.py": code}) == Sources()


def test_an_agent_in_yaml_is_named_by_its_folder_once(read):
    files = {"agents/desk/root_agent.yaml": "name: desk", "agents/desk/agent.py": ADK}

    (agent,) = read(files).agents

    assert (agent.name, agent.target) == ("desk", "agents/desk")


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


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("def answer(question): ...", True),
        ("def answer(it): ...", False),
        ("def ask(prompt): ...", False),
    ],
)
def test_in_a_module_with_another_name_a_function_must_be_clear(read, code, is_found):
    found = read({"billing.py": code, "src/chat/bot.py": "def reply(text): ..."}).agents
    assert [each.target for each in found] == ["src.chat.bot:reply", "billing:answer"][
        : 1 + is_found
    ]


@pytest.mark.parametrize("file", ["tests/bot.py", "my-bot/bot.py", "__init__.py"])
def test_a_function_in_a_module_that_cannot_be_meant_is_left(read, file):
    assert read({file: "def answer(message): ..."}).agents == ()


OBJECTS = {
    "langgraph: a graph that is compiled": (
        "from langgraph.graph import StateGraph\nbuilder = StateGraph(S)\n"
        "graph = builder.compile(checkpointer=memory)"
    ),
    "langgraph: a graph that is built in one go": (
        "import langgraph.graph\ngraph = StateGraph(S).add_node(f).compile()"
    ),
    "langgraph: an agent that is ready": (
        "from langgraph.prebuilt import create_react_agent as make\ngraph: Any = make(m, tools)"
    ),
    "langgraph: an agent of LangChain": (
        "from langchain.agents import create_agent\ngraph = create_agent(model)"
    ),
    "agentflow: a graph that is compiled": (
        "from agentflow.graph import StateGraph\ngraph = StateGraph().compile()"
    ),
    "openai_agents: an agent": "from agents import Agent, Runner\ngraph = Agent(name='x')",
    "openai_agents: an agent of a module": "import agents\ngraph = agents.Agent(name='x')",
    "pydantic_ai: an agent": "from pydantic_ai import Agent\ngraph = Agent('test')",
    "pydantic_ai: the root agent of something else than ADK": (
        "from pydantic_ai import Agent\ngraph = root_agent = Agent('test')"
    ),
}


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("file", ["src/flow.py", "agent.py"])
def test_an_agent_of_another_framework_is_an_object_of_a_module(read, what, file):
    name = "root_agent" if "root agent" in what else "graph"

    (agent,) = read({file: OBJECTS[what]}).agents

    module = "src.flow" if file == "src/flow.py" else "agent"
    assert (agent.kind, agent.target) == (what.partition(":")[0], f"{module}:{name}")


@pytest.mark.parametrize(
    "code",
    [
        "import langgraph, re\npattern = re.compile('x')",
        "import re\ngraph = builder.compile()",
        "import langgraph, agentflow\ngraph = builder.compile()",
        "import langgraph\ndef make():\n    graph = builder.compile()",
        "import langgraph\nif __name__ == '__main__':\n    graph = builder.compile()",
        "from google.adk.agents import Agent\nagent = Agent(name='x')",
        "from .agents import Agent\nagent = Agent(name='x')",
        "import pydantic_ai\nagent = Agent('test')",
        "import langgraph\ngraph.compile()",
    ],
)
def test_where_there_is_doubt_whose_object_it_is_it_is_left(read, code):
    assert read({"flow.py": code}).agents == ()


def test_a_package_of_the_repository_is_no_framework(read):
    files = {"flow.py": OBJECTS["openai_agents: an agent"], "agents/__init__.py": ""}

    assert read(files).agents == ()


@pytest.mark.parametrize("file", ["tests/flow.py", "my-app/flow.py"])
def test_an_object_in_a_module_that_cannot_be_meant_is_left(read, file):
    assert read({file: OBJECTS["pydantic_ai: an agent"]}).agents == ()


@pytest.mark.parametrize(
    ("names", "meant"),
    [(("billing", "agent", "triage"), "agent"), (("billing", "refunds", "triage"), "triage")],
)
def test_of_several_the_one_with_a_usual_name_is_meant_or_else_the_last(read, names, meant):
    made = [f"{name} = Agent('test')" for name in names]

    (agent,) = read({"desk.py": "\n".join(["from pydantic_ai import Agent", *made])}).agents

    assert agent.target == f"desk:{meant}"


def test_an_agent_is_called_as_its_module_or_its_folder_where_that_says_more(read):
    code = OBJECTS["pydantic_ai: an agent"]

    found = read({"desk/agent.py": code, "refunds.py": code}).agents

    assert [each.name for each in found] == ["refunds", "desk"]


AGENTFLOW = "from agentflow.graph import StateGraph\n"


def test_the_configuration_of_agentflow_names_the_agent(read):
    files = {"x/agentflow.json": '{"agent": "graph.react:app"}', "x/graph/react.py": AGENTFLOW}

    (agent,) = read(files).agents

    assert (agent.kind, agent.target) == ("agentflow", "x.graph.react:app")


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"agent": 1}', '{"agent": "graph"}', '{"agent": "gone:app"}', "\0"]
)
def test_a_configuration_of_agentflow_that_names_none_is_passed_over(read, text):
    found = read({"agentflow.json": text, "graph.py": AGENTFLOW})

    assert found.agents == ()
    assert found.other_frameworks == (("AgentFlow", "agentflow.json"),)


def test_the_configuration_of_langgraph_names_the_agents_in_its_order(read):
    graphs = {
        "main": "./src/main.py:graph",
        "web": "./web/graph.ts:graph",
        "sub": {"path": "src/sub.py:make_graph", "description": "A part of it."},
        "gone": "./gone.py:graph",
        "odd": 5,
    }
    made = "graph = build().compile().with_config(recursion_limit=9)"
    files = {
        "x/langgraph.json": json.dumps({"graphs": graphs}),
        "x/src/main.py": made,
        "x/src/sub.py": "def make_graph(): ...",
        "x/web/graph.ts": "",
        "other.py": "from langgraph.graph import StateGraph\n\ngraph = StateGraph(dict).compile()",
    }

    assert [(agent.kind, agent.target) for agent in read(files).agents] == [
        ("langgraph", "x.src.main:graph"),
        ("langgraph", "x.src.sub:make_graph"),
        ("langgraph", "other:graph"),
    ]


@pytest.mark.parametrize("text", ["{", "[]", '{"graphs": []}', '{"graphs": {"a": "./g.ts:graph"}}'])
def test_a_configuration_of_langgraph_without_python_is_passed_over(read, text):
    found = read({"langgraph.json": text, "g.ts": ""})

    assert (found.agents, found.frameworks) == ((), ())


def test_frameworks_without_an_agent_are_named_with_a_file(read):
    files = {"a/graph.py": "from langgraph.graph import StateGraph", "b.py": "import tenxgraph"}

    found = read(files)

    assert found.frameworks == (("LangGraph", "a/graph.py"), ("AgentFlow", "b.py"))
    assert found.other_frameworks == found.frameworks


def test_a_framework_whose_agent_was_found_is_no_other(read):
    found = read({"flow.py": OBJECTS["langgraph: a graph that is compiled"]})

    assert found.frameworks == (("LangGraph", "flow.py"),)
    assert found.other_frameworks == ()


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
