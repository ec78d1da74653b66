"""Has its tool from an MCP server beside it."""

import sys
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters
from scripted import answers, asked, call, model

SERVER = StdioServerParameters(
    command=sys.executable, args=[str(Path(__file__).with_name("server.py"))]
)


def answer(request):
    return "It is done." if answers(request) else [call("greet", name=asked(request))]


root_agent = LlmAgent(
    name="mcp_tools",
    model=model(answer),
    tools=[McpToolset(connection_params=StdioConnectionParams(server_params=SERVER))],
)
