"""The same as mux_verbs.mjs on PyPI mcp 1.30: `mux_verbs.py MEET NAME COUNT COMMAND ARGS..`."""

import json
import os
import pathlib
import sys

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl, FileUrl

meet, name, count, command, *args = sys.argv[1:]
meet, count = pathlib.Path(meet), int(count)


async def all_at(place):
    (meet / place).mkdir(parents=True, exist_ok=True)
    (meet / place / name).touch()
    while len(list((meet / place).iterdir())) < count:
        await anyio.sleep(0.02)


class Alone:
    async def __aenter__(self):
        while True:
            try:
                return (meet / "turn").mkdir()
            except FileExistsError:
                await anyio.sleep(0.02)

    async def __aexit__(self, *_):
        (meet / "turn").rmdir()


async def sampling(_context, _params):
    text = types.TextContent(type="text", text=f"said by {name}")
    return types.CreateMessageResult(model="rig", role="assistant", content=text)


async def elicitation(_context, _params):
    return types.ElicitResult(action="decline")


async def roots(_context):
    return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///rig"), name="rig")])


updated = anyio.Event()


async def on_message(message):
    if isinstance(getattr(message, "root", None), types.ResourceUpdatedNotification):
        updated.set()


def texts(result):
    return [part.model_dump(mode="json", exclude_none=True) for part in result.content]


async def visit():
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    client = {
        "sampling_callback": sampling,
        "elicitation_callback": elicitation,
        "list_roots_callback": roots,
        "message_handler": on_message,
    }
    async with stdio_client(server) as streams, ClientSession(*streams, **client) as session:
        await session.initialize()
        await all_at("connected")
        tools = (await session.list_tools()).tools
        resources = (await session.list_resources()).resources
        found = {"tools": sorted(tool.name for tool in tools), "resources": len(resources)}
        echo = await session.call_tool("echo", {"message": f"{name} – wörtlich – 和"})
        found["echo"] = echo.content[0].text.replace(name, "NAME")
        found["sum"] = texts(await session.call_tool("get-sum", {"a": 2, "b": 3}))
        found["progress"] = []

        async def on_progress(progress, _total, _message):
            found["progress"].append(progress)

        long = {"duration": 1, "steps": 4}
        done = await session.call_tool("trigger-long-running-operation", long, progress_callback=on_progress)
        found["long"] = texts(done)
        # The last one comes together with the answer, and may be taken for late.
        found["progress"] = found["progress"][:3]

        # This client takes nothing back by itself.
        first = anyio.Event()

        async def on_first(*_):
            first.set()

        async def call_long():
            long = {"duration": 40, "steps": 200}
            try:
                await session.call_tool("trigger-long-running-operation", long, progress_callback=on_first)
            except McpError as error:
                print(f"the cancelled call is answered: {error}", file=sys.stderr)

        async with anyio.create_task_group() as group:
            request = session._request_id
            group.start_soon(call_long)
            await first.wait()
            params = types.CancelledNotificationParams(requestId=request)
            note = types.CancelledNotification(params=params)
            await session.send_notification(types.ClientNotification(note))
            group.cancel_scope.cancel()
        found["cancelled"] = "yes"
        found["after"] = texts(await session.call_tool("get-sum", {"a": 4, "b": 5}))
        await all_at("quiet")
        async with Alone():
            said = texts(await session.call_tool("trigger-sampling-request", {"prompt": "p", "maxTokens": 5}))
            found["sampling"] = f"said by {name}" in json.dumps(said)
            asked = await session.call_tool("trigger-elicitation-request", {})
            found["elicitation"] = [part.text for part in asked.content]
            uri = AnyUrl(resources[0].uri)
            await session.subscribe_resource(uri)
            await session.call_tool("toggle-subscriber-updates", {})
            await updated.wait()
            await session.call_tool("toggle-subscriber-updates", {})
            await session.unsubscribe_resource(uri)
            found["updated"] = True
        await all_at("done")
        print(json.dumps(found, indent=1, ensure_ascii=False), flush=True)
        # The server still reports on the call that was cancelled, which this SDK minds while it closes.
        os._exit(0)


anyio.run(visit)
