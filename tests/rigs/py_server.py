"""A server with one tool, on PyPI mcp 1.30 or 2.3, whichever the interpreter has."""

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

server = Server("rig-python")


@server.tool()
def sum(a: int, b: int) -> int:
    """Adds two numbers, the sum is – wörtlich – 和."""
    return a + b


server.run("stdio")
