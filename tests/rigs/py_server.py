"""A server with one tool over stdio, on PyPI mcp 1.30 or 2.3 or fastmcp 4, whichever the interpreter has."""

options = {}
try:
    from fastmcp import FastMCP as Server

    options = {"show_banner": False}
except ImportError:
    try:
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:
        from mcp.server.fastmcp import FastMCP as Server

server = Server("rig-python")


@server.tool()
def sum(a: int, b: int) -> int:
    """Adds two numbers, the sum is – wörtlich – 和."""
    return a + b


server.run("stdio", **options)
