"""An MCP server of one tool, on the standard streams."""

from mcp.server import MCPServer

server = MCPServer("greeter")


@server.tool()
def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    server.run()
