"""A client on PyPI mcp 1.30: `py_client.py COMMAND ARGS..` starts the server, lists its tools, calls one, and prints
all of it as canonical JSON on stdout and the milliseconds to the first answer on stderr."""

import json
import os
import sys
import time

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def visit(command, *args):
    start = time.monotonic()
    parameters = StdioServerParameters(command=command, args=list(args), env=dict(os.environ))
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
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
