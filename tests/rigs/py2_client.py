"""A client on PyPI mcp 2.3, which finds out by itself whether the server is of the stateless or of the older revisions:
`py2_client.py COMMAND ARGS..` starts the server, or `py2_client.py URL` reaches it; prints what it found as canonical
JSON on stdout and the milliseconds to the first answer on stderr."""

import json
import os
import sys
import time

import anyio
from mcp import Client, StdioServerParameters


async def visit(command, *args):
    server = command
    if not command.startswith("http"):
        server = StdioServerParameters(command=command, args=list(args), env=dict(os.environ))
    start = time.monotonic()
    async with Client(server) as client:
        print(f"first answer after {round(1000 * (time.monotonic() - start))} ms", file=sys.stderr)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        name = next(name for name in ("sum", "get-sum") if name in tools)
        result = await client.call_tool(name, {"a": 2, "b": 3})
        if "5" not in result.content[0].text:
            raise SystemExit(f"2 + 3 is {result}")
        found = {
            "serverInfo": client.server_info.model_dump(mode="json"),
            "protocolVersion": client.protocol_version,
            "capabilities": client.server_capabilities.model_dump(mode="json"),
            "tools": [tools[name].model_dump(mode="json") for name in sorted(tools)],
            "call": result.model_dump(mode="json"),
        }
    print(json.dumps(found, sort_keys=True, indent=1, ensure_ascii=False))


anyio.run(visit, *sys.argv[1:])
