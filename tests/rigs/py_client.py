"""A client on PyPI mcp 1.30: `py_client.py COMMAND ARGS..` starts the server, or `py_client.py URL` reaches it; prints what it
found."""

import os

import visit
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def connect(command, *args):
    if command.startswith("http"):
        return streamable_http_client(command)
    return stdio_client(StdioServerParameters(command=command, args=list(args), env=dict(os.environ)))


async def found(*words):
    first_answer = visit.FirstAnswer()
    async with connect(*words) as (read, write, *_), ClientSession(read, write) as session:
        hello = await session.initialize()
        first_answer()
        tools = (await session.list_tools()).tools
        call = visit.pick(tools)
        result = await session.call_tool(call["name"], call["arguments"])
        visit.judge(call, result.content)
    return {"hello": hello, "tools": tools, "call": result}


visit.main(found)
