"""Compares bridges from stdio to Streamable HTTP: what they take, and what they lose.

    python3 benches/bridges.py [--calls N] NAME=COMMAND..

COMMAND is one string with {url} in it, such as 'lumen=target/release/lumen bridge --url {url}' or
'mcp-proxy=mcp-proxy --transport streamablehttp {url}'. Prints two tables in Markdown: time from the start to the first
answer, memory of all its processes after that, time for a call and calls a second with 1 and with 16 in flight, beside the
same calls made directly; and which of the field's failures it has. The server is in this file: it answers at once, in a
process of its own. Everything stays on this machine; figures from a busy one say little.
"""

import argparse
import asyncio
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import threading
import time
import queue

LIMIT = 10  # seconds for one case

# ---------------------------------------------------------------------------------------------------------- the server


def result(request, value):
    return b'{"jsonrpc":"2.0","id":' + json.dumps(request["id"]).encode() + b',"result":' + value + b"}"


def text(value):
    return json.dumps({"content": [{"type": "text", "text": value}], "isError": False}).encode()


class Server:
    """Answers by the name of the tool that is called."""

    def __init__(self):
        self.sessions, self.count, self.seen = set(), 0, {}

    async def serve(self, reader, writer):
        try:
            while await self.exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        writer.close()

    async def exchange(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
        method, path = first.split()[:2]
        if not path.startswith("/mcp"):
            return self.send(writer, 404, "text/plain", b"not here")
        if method != "POST":
            return self.send(writer, 200 if method == "DELETE" else 405, "text/plain", b"")
        request = json.loads(body)
        name = request.get("method")
        if name == "server/discover":
            return self.send(writer, 400, "text/plain", b"what?")
        if name == "initialize":
            self.count += 1
            session = f"s{self.count}"
            self.sessions.add(session)
            version = "2025-06-18"
            value = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
            self.seen["early"] = self.seen.get("early", False) or "mcp-protocol-version" in headers
            answer = result(request, json.dumps(value).encode())
            return self.send(writer, 200, "application/json", answer, ("mcp-session-id", session))
        self.seen["version"] = headers.get("mcp-protocol-version")
        session = headers.get("mcp-session-id")
        if session not in self.sessions:
            return self.send(writer, 404, "text/plain", b"no such session")
        if name == "notifications/cancelled":
            return self.send(writer, 500, "text/html", b"<html>no")
        if "id" not in request or name is None:
            return self.send(writer, 202, "text/plain", b"")
        if name == "tools/list":
            names = [tool[5:] for tool in dir(self) if tool.startswith("tool_")]
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            return self.send(writer, 200, "application/json", result(request, json.dumps({"tools": tools}).encode()))
        tool = getattr(self, "tool_" + request.get("params", {}).get("name", "echo"), self.tool_echo)
        return await tool(writer, request, body, session)

    def send(self, writer, status, kind, body, *headers):
        lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return True

    def ok(self, writer, request, value):
        return self.send(writer, 200, "application/json", result(request, value))

    async def stream(self, writer, pieces):
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.001)
        return False

    async def tool_echo(self, writer, request, body, session):
        return self.ok(writer, request, text("echo"))

    async def tool_numbers(self, writer, request, body, session):
        kept = b"9007199254740993" in body and re.search(rb'"f":\s*1\.0\b', body) is not None
        value = b'{"content":[],"structuredContent":{"n":9007199254740993,"f":1.0,"kept":%s}}' % (b"true" if kept else b"false")
        return self.ok(writer, request, value)

    async def tool_forget(self, writer, request, body, session):
        self.sessions.discard(session)
        return self.ok(writer, request, text("forgotten"))

    async def tool_unauthorized(self, writer, request, body, session):
        return self.send(writer, 401, "text/plain", b"who are you?")

    async def tool_gateway(self, writer, request, body, session):
        return self.send(writer, 502, "text/html", b"<html>bad gateway" + b"x" * (1 << 20))

    async def tool_error(self, writer, request, body, session):
        error = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32099, "message": "no", "data": [1]}}
        return self.send(writer, 400, "application/json", json.dumps(error).encode())

    async def tool_reset(self, writer, request, body, session):
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{")
        await writer.drain()
        return False

    async def tool_silent(self, writer, request, body, session):
        return await self.stream(writer, [b": nothing\n\n"])

    async def tool_stream(self, writer, request, body, session):
        answer = result(request, text("é—漢😀"))
        events = "\ufeff: c\r\n\r\nevent: ping\ndata: {}\n\ndata:\n\nid: 1\nretry: 5\ndata: ".encode() + answer + b"\n\n"
        return await self.stream(writer, [events[at : at + 1] for at in range(len(events))])

    async def tool_seen(self, writer, request, body, session):
        return self.ok(writer, request, text(json.dumps(self.seen)))


async def serve():
    server = await asyncio.start_server(Server().serve, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


# ---------------------------------------------------------------------------------------------------------- the client

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def line(method, id=None, **params):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if id is None else {"id": id, **message}).encode() + b"\n"


def call(id, name, arguments=None):
    return line("tools/call", id, name=name, arguments=arguments or {})


class Bridge:
    def __init__(self, command, url):
        self.began = time.perf_counter()
        words = [word.replace("{url}", url) for word in shlex.split(command)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True, bufsize=0
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for text in self.process.stdout:
            self.lines.put(text)
        self.lines.put(None)

    def write(self, *lines):
        self.process.stdin.write(b"".join(lines))

    def line(self, limit=LIMIT):
        """The next line; None if none comes."""
        try:
            return self.lines.get(timeout=limit)
        except queue.Empty:
            return None

    def answers(self, count, limit=LIMIT):
        """So many messages with an id and no method, by their id as JSON; fewer if they do not come."""
        found, deadline = [], time.perf_counter() + limit
        while len(found) < count and (text := self.line(max(0.0, deadline - time.perf_counter()))):
            try:
                message = json.loads(text)
            except ValueError:
                continue
            if "method" not in message and "id" in message:
                found.append((json.dumps(message["id"]), message, text))
        return found

    def handshake(self):
        self.write(line("initialize", 0, **INITIALIZE))
        if not self.answers(1, 60):
            return None
        took = time.perf_counter() - self.began
        self.write(line("notifications/initialized"))
        return took

    def memory(self):
        """Resident memory of all its processes, in MiB."""
        total = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getsid(int(pid)) != self.process.pid:
                    continue
                with open(f"/proc/{pid}/status") as status:
                    total += int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])
            except (OSError, TypeError):
                pass
        return total / 1024

    def end(self):
        try:
            os.killpg(self.process.pid, 9)
        except OSError:
            pass
        self.process.wait()


def measure(command, url, calls, starts=5):
    firsts = []
    for _ in range(starts):
        bridge = Bridge(command, url)
        firsts.append(bridge.handshake() or float("nan"))
        if len(firsts) < starts:
            bridge.end()
    memory = bridge.memory()
    for id in range(1, 100):
        bridge.write(call(id, "echo"))
        bridge.line()
    times = []
    for id in range(1000, 1000 + calls):
        began = time.perf_counter()
        bridge.write(call(id, "echo"))
        bridge.line()
        times.append(time.perf_counter() - began)
    began, sent, got, waits = time.perf_counter(), 0, 0, {}
    while got < calls:
        while sent - got < 16 and sent < calls:
            waits[10**6 + sent] = time.perf_counter()
            bridge.write(call(10**6 + sent, "echo"))
            sent += 1
        text = bridge.line()
        if text is None:
            break
        waits[json.loads(text)["id"]] -= time.perf_counter()
        got += 1
    took = time.perf_counter() - began
    bridge.end()
    flying = statistics.median(-wait for wait in waits.values())
    return statistics.median(firsts), memory, statistics.median(times), got / took, flying


class Direct:
    """The same calls without a bridge, one connection for each that is in flight."""

    def __init__(self, port, calls):
        self.port, self.calls = port, calls

    async def run(self):
        connections = [await asyncio.open_connection("127.0.0.1", self.port) for _ in range(16)]
        _, session = await self.post(connections[0], line("initialize", 0, **INITIALIZE), "")
        times = [await self.timed(connections[0], session) for _ in range(self.calls)]
        began = time.perf_counter()
        share = self.calls // 16

        async def many(connection):
            return [await self.timed(connection, session) for _ in range(share)]

        flying = sum(await asyncio.gather(*map(many, connections)), [])
        took = time.perf_counter() - began
        return float("nan"), float("nan"), statistics.median(times), share * 16 / took, statistics.median(flying)

    async def timed(self, connection, session):
        began = time.perf_counter()
        await self.post(connection, call(1, "echo"), session)
        return time.perf_counter() - began

    async def post(self, connection, body, session):
        reader, writer = connection
        head = f"POST /mcp HTTP/1.1\r\nhost: x\r\nmcp-session-id: {session}\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.search(r"content-length: (\d+)", head)[1])
        found = re.search(r"mcp-session-id: (\S+)", head)
        return await reader.readexactly(length), found[1] if found else session


# ----------------------------------------------------------------------------------------------------------- the cases


def one(bridge, id, name, arguments=None):
    bridge.write(call(id, name, arguments))
    found = bridge.answers(1)
    return found[0][1:] if found and found[0][0] == json.dumps(id) else (None, b"")


def errs(*names):
    def check(bridge):
        for id, name in enumerate(names, 1):
            message = one(bridge, id, name)[0]
            if message is None:
                return "no answer"
            # A tool's own way of saying so counts too.
            if "error" not in message and not message["result"].get("isError"):
                return "no error"
        return one(bridge, 99, "echo")[0] is not None or "dead afterwards"

    return check


def numbers(bridge):
    bridge.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"numbers","arguments":{"n":9007199254740993,"f":1.0}}}\n')
    found = bridge.answers(1)
    if not found:
        return "no answer"
    text = found[0][2]
    if b"true" not in text:
        return "changed on the way there"
    return (b"9007199254740993" in text and re.search(rb'"f": ?1\.0\b', text) is not None) or "changed on the way back"


def null_id(bridge):
    bridge.write(b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}\n')
    bridge.write(call(5, "echo"))
    ids = [id for id, *_ in bridge.answers(2, 3)]
    if "5" not in ids:
        return "the next call is lost"
    return "null" in ids or "no answer"


def forgotten(bridge):
    one(bridge, 1, "forget")
    bridge.write(*(call(id, "echo") for id in (2, 3, 4)))
    good = [id for id, message, _ in bridge.answers(3) if '"echo"' in json.dumps(message)]
    return len(good) == 3 or f"{len(good)} of 3 answered"


def genuine(bridge):
    message, _ = one(bridge, 1, "error")
    error = (message or {}).get("error")
    if not error:
        return "no error"
    return error == {"code": -32099, "message": "no", "data": [1]} or "another error"


def notification(bridge):
    bridge.write(line("notifications/cancelled", requestId=77), call(1, "echo"))
    lines = [bridge.line(), bridge.line(1)]
    if lines[0] is None:
        return "dead afterwards"
    return (json.loads(lines[0]).get("id") == 1 and lines[1] is None) or "answered"


def streamed(bridge):
    message, _ = one(bridge, 1, "stream")
    return message is not None and "é—漢😀" in json.dumps(message, ensure_ascii=False) or "lost"


def version(bridge):
    message, _ = one(bridge, 1, "seen")
    if not message or "result" not in message:
        return "no answer"
    seen = json.loads(message["result"]["content"][0]["text"])
    if seen["version"] != "2025-06-18":
        return f"says {seen['version']}"
    return not seen["early"] or "also on initialize"


def owed(bridge):
    bridge.write(*(call(id, "echo") for id in (1, 2, 3)))
    bridge.process.stdin.close()
    count = len(bridge.answers(3))
    return count == 3 or f"{count} of 3 answered"


def ends(bridge):
    bridge.process.stdin.close()
    try:
        code = bridge.process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        return "does not end"
    return code == 0 or f"ends with {code}"


def empty_id(bridge):
    return one(bridge, "", "echo")[0] is not None or "lost"


CASES = [
    ("O-11 id \"\"", empty_id),
    ("O-12 id null", null_id),
    ("O-13 numbers", numbers),
    ("O-21 answers owed at end of input", owed),
    ("O-22 end of input", ends),
    ("O-25 session forgotten", forgotten),
    ("O-26 401", errs("unauthorized")),
    ("O-26 502, 1 MiB of HTML", errs("gateway")),
    ("O-26 reset in the body", errs("reset")),
    ("O-26 stream without an answer", errs("silent")),
    ("O-26 genuine error under 400", genuine),
    ("O-27 notification answered by 500", notification),
    ("O-28 stream byte by byte", streamed),
    ("O-29 version header", version),
]


def judged(command, url, check):
    bridge = Bridge(command, url)
    try:
        if bridge.handshake() is None:
            return "no handshake"
        verdict = check(bridge)
        return "ok" if verdict is True else str(verdict)
    except (BrokenPipeError, ValueError, KeyError) as error:
        return f"dead ({type(error).__name__})"
    finally:
        bridge.end()


def start_server():
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    return server, int(server.stdout.readline())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("bridges", nargs="+", metavar="NAME=COMMAND")
    args = parser.parse_args()
    bridges = [bridge.split("=", 1) for bridge in args.bridges]
    server, port = start_server()
    url = f"http://127.0.0.1:{port}/mcp"
    print("| | start to first answer, ms | memory, MiB | call, ms | calls a second, 16 in flight | call, 16 in flight, ms |")
    print("|---|---:|---:|---:|---:|---:|")
    rows = [("direct", asyncio.run(Direct(port, args.calls).run()))]
    rows += [(name, measure(command, url, args.calls)) for name, command in bridges]
    for name, (first, memory, single, rate, flying) in rows:
        figures = (f"{first * 1000:.0f}", f"{memory:.0f}", f"{single * 1000:.2f}", f"{rate:.0f}", f"{flying * 1000:.2f}")
        print("|", " | ".join((name, *(figure.replace("nan", "") for figure in figures))), "|")
    server.kill()
    print("\n| |", " | ".join(name for name, _ in bridges), "|")
    print("|---|" + "---|" * len(bridges))
    for title, check in CASES:
        row = []
        for _, command in bridges:
            # A server of its own for each, for what it remembers.
            server, port = start_server()
            row.append(judged(command, f"http://127.0.0.1:{port}/mcp", check))
            server.kill()
        print("|", title, "|", " | ".join(row), "|", flush=True)


if sys.argv[1:] == ["serve"]:
    asyncio.run(serve())
else:
    main()
