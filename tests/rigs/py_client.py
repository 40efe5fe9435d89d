"""A client on PyPI mcp 1.30: `py_client.py COMMAND ARGS..` starts the server, or `py_client.py URL` reaches it; it lists
the tools, calls one, and prints all of it as canonical JSON on stdout and the milliseconds to the first answer on stderr."""

import json
import os
import sys
import time

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def connect(command, *args):
    if command.startswith("http"):
        return streamable_http_client(command)
    return stdio_client(StdioServerParameters(command=command, args=list(args), env=dict(os.environ)))


async def visit(*words):
    start = time.monotonic()
    async with connect(*words) as (read, write, *_), ClientSession(read, write) as session:
        hello = await session.initialize()
        print(f"first answer after {round(1000 * (time.monotonic() - start))} ms", file=sys.stderr)
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        name = next(name for name in ("sum", "get-sum") if name in tools)
        result = await session.call_tool(name, {"a": 2, "b": 3})
        if "5" not in result.content[0].text:
            raise SystemExit(f"2 + 3 is {result}")
    found = {
        "serverInfo": hello.serverInfo.model_dump(mode="json"),
        "protocolVersion": hello.protocolVersion,
        "capabilities": hello.capabilities.model_dump(mode="json"),
        "tools": [tools[name].model_dump(mode="json") for name in sorted(tools)],
        "call": result.model_dump(mode="json"),
    }
    print(json.dumps(found, sort_keys=True, indent=1, ensure_ascii=False))


anyio.run(visit, *sys.argv[1:])
