"""A server with one tool over Streamable HTTP, on PyPI mcp 1.30 or 2.3 or fastmcp 4: `py_http_server.py PORT`, on
whichever of them the interpreter has."""

import sys

port = int(sys.argv[1])


def sum(a: int, b: int) -> int:
    """Adds two numbers, the sum is – wörtlich – 和."""
    return a + b


try:
    from fastmcp import FastMCP

    server = FastMCP("rig-fastmcp")
    options = {"transport": "http", "port": port, "show_banner": False}
except ImportError:
    try:
        from mcp.server.mcpserver import MCPServer

        server = MCPServer("rig-python")
        options = {"transport": "streamable-http", "port": port}
    except ImportError:
        from mcp.server.fastmcp import FastMCP

        server = FastMCP("rig-python", port=port)
        options = {"transport": "streamable-http"}

server.tool()(sum)
server.run(**options)
