"""An MCP server of one tool, on the standard streams."""

try:
    from mcp.server import MCPServer
except ImportError:  # before 2.0
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("greeter")


@server.tool()
def greet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    server.run()
