"""The stdio transport of PyPI lumen-mcp: `lumen_py_client.py WANTED CAPTURED COMMAND ARGS..` starts a server, whose output is
also written to the file CAPTURED before it goes on, asks it much, and prints what became of it.

WANTED is how it has to come, in any case not before the server has said 64 KiB: `hears`, `hears-plain` (the same, of a transport
that was told not to ask for LUMEN), or `ends` (the task that reads ends by an error)."""

import asyncio
import contextlib
import os
import sys

from lumen import LumenStdioTransport

PIECE = 64 * 1024
LISTS = 60  # enough for several pieces of answers
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "rig-lumen-py", "version": "1"}}


async def main(wanted, captured, command, *args):
    heard, said = [], []
    piece = asyncio.Event()

    def on_message(message):
        if not heard:
            said.append(os.path.getsize(captured))
            piece.set()
        heard.append(message)

    transport = LumenStdioTransport(command=command, args=list(args), force_json_rpc=wanted == "hears-plain")
    transport.onmessage = on_message
    await transport.start()
    # A server that knows nothing of LUMEN reads the probe and the line after it as one.
    await transport.send({"jsonrpc": "2.0", "method": "notifications/rig"})
    await transport.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
    await transport.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for number in range(1, 1 + LISTS):
        await transport.send({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
    reader, hearing = transport._reader_task, asyncio.create_task(piece.wait())
    await asyncio.wait({reader, hearing}, return_when=asyncio.FIRST_COMPLETED)
    hearing.cancel()
    how = "hears" if heard else "ends"
    said = said[0] if said else os.path.getsize(captured)
    error = repr(reader.exception())[:60] if reader.done() else ""
    print(f"first {'heard' if heard else 'read'} after {said} bytes {error}", file=sys.stderr)
    with contextlib.suppress(UnicodeDecodeError):
        await transport.close()
    ids = [message["id"] for message in heard if "id" in message and "method" not in message]
    if how != wanted.removesuffix("-plain") or said < PIECE or ids != list(range(len(ids))):
        raise SystemExit(f"failure: {how}, not {wanted}, after {said} bytes, answers {ids}")


asyncio.run(main(*sys.argv[1:]))
