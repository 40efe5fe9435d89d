"""A client on PyPI mcp 2.3: `py2_client.py MODE COMMAND ARGS..` starts the server, or `py2_client.py MODE URL` reaches it; prints
what it found. MODE is `legacy`, or `auto` to find out whether the server is of the stateless or of the older revisions."""

import os

import visit
from mcp import Client, StdioServerParameters


async def found(mode, command, *args):
    server = command
    if not command.startswith("http"):
        server = StdioServerParameters(command=command, args=list(args), env=dict(os.environ))
    first_answer = visit.FirstAnswer()
    async with Client(server, mode=mode) as client:
        first_answer()
        tools = (await client.list_tools()).tools
        call = visit.pick(tools)
        result = await client.call_tool(call["name"], call["arguments"])
        visit.judge(call, result.content)
        return {
            "serverInfo": client.server_info,
            "protocolVersion": client.protocol_version,
            "capabilities": client.server_capabilities,
            "instructions": client.instructions,
            "tools": tools,
            "call": result,
        }


visit.main(found)
