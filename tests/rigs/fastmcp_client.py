"""A client on PyPI fastmcp 4, which finds out by itself whether the server is of the stateless or of the older revisions:
`fastmcp_client.py COMMAND ARGS..` starts the server and prints what it found."""

import os

import visit
from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def found(command, *args):
    server = StdioTransport(command, list(args), env=dict(os.environ), keep_alive=False)
    first_answer = visit.FirstAnswer()
    async with Client(server) as client:
        first_answer()
        tools = await client.list_tools()
        call = visit.pick(tools)
        result = await client.call_tool(call["name"], call["arguments"])
        visit.judge(call, result.content)
        return {
            "serverInfo": client.server_info,
            "protocolVersion": client.protocol_version,
            "capabilities": client.server_capabilities,
            "tools": tools,
            "content": [part.model_dump(mode="json") for part in result.content],
            "structured": result.structured_content,
        }


visit.main(found)
