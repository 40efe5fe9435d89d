"""Multiplexers side by side: which of the field's failures each has.

    python3 benches/muxes.py NAME=COMMAND..

COMMAND is one string, in which {socket} is the Unix socket to serve, or {port} the local port for Streamable HTTP at /mcp, and
{server} the command of the server that is shared; {exe} and {args} are its two halves. Such as
'lumen=target/release/lumen mux --socket {socket} --backoff 1s..1s -- {server}'. Each case has a multiplexer and servers of its
own, which are in this file. Prints a table in Markdown; what a case is about is said by its line there and its function here.
"""

import collections
import http.client
import json
import os
import queue
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = 15  # seconds that a single message may take

# ---------------------------------------------------------------------------------------------------------- the server


def serve(log):
    """Answers by the name of the tool that is called, and writes down each line that it reads."""
    ready, asked = False, {}
    with open(log, "a", buffering=1) as record:
        record.write("start\n")
        for line in sys.stdin:
            record.write(line if line.endswith("\n") else line + "\n")
            message = json.loads(line)
            ident, method, params = message.get("id"), message.get("method"), message.get("params") or {}
            raw = line.split('"id":', 1)[1].lstrip() if '"id":' in line else ""
            raw = raw[: len(raw) - len(raw.lstrip("0123456789-"))] or json.dumps(ident)

            def say(text):
                sys.stdout.write(text + "\n")
                sys.stdout.flush()

            def answer(result, to=raw):
                say('{"jsonrpc":"2.0","id":%s,"result":%s}' % (to, result))

            if method == "initialize":
                if ready:
                    say('{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"already initialized"}}' % raw)
                    continue
                ready = True
                answer(json.dumps({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}))
            elif method is None:
                if ident in ("ask", 77) and ident in asked:
                    answer(json.dumps({"content": [], "structuredContent": {"reply": message.get("result")}}), asked.pop(ident))
            elif ident is None and "id" not in message:
                continue
            elif not ready:
                say('{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"not initialized"}}' % raw)
            elif method == "tools/call":
                name = params.get("name")
                if name == "crash":
                    os._exit(3)
                elif name == "half":
                    sys.stdout.write('{"jsonrpc":"2.0","id":%s,"resu' % raw)
                    sys.stdout.flush()
                    os._exit(1)
                elif name == "wait":
                    continue
                elif name == "progress":
                    token = json.dumps(params.get("_meta", {}).get("progressToken"))
                    note = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}'
                    say(note % (token, params["arguments"]["n"]))
                    time.sleep(0.3)
                    answer('{"content":[]}')
                    say(note % (token, 99))
                elif name == "ask":
                    asked["ask"] = raw
                    say('{"jsonrpc":"2.0","id":"ask","method":"roots/list"}')
                elif name == "big":
                    answer('{"content":[{"type":"text","text":"%s"}]}' % ("x" * 5_000_000))
                elif name == "numbers":
                    kept = '"a":9007199254740993' in line.replace(" ", "") and '"f":1.0' in line.replace(" ", "")
                    answer('{"content":[],"structuredContent":{"n":9007199254740993,"f":1.0,"kept":%s}}' % ("true" if kept else "false"))
                else:
                    answer('{"content":[],"structuredContent":%s}' % json.dumps(params.get("arguments", {})))
            else:
                answer('{"tools":[]}')


# ------------------------------------------------------------------------------------------------------- the clients


class Line:
    """A client on a Unix socket."""

    def __init__(self, mux):
        self.got, self.sock = queue.Queue(), socket.socket(socket.AF_UNIX)
        self.sock.connect(mux.socket)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for line in self.sock.makefile("rb"):
                self.got.put(line.decode())
        except OSError:
            pass
        self.got.put(None)

    def send(self, text):
        self.sock.sendall(text.encode() + b"\n")

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


class Http:
    """A client on Streamable HTTP."""

    def __init__(self, mux):
        self.got, self.port, self.session, self.links = queue.Queue(), mux.port, None, []

    def send(self, text):
        if '"initialize"' in text or '"notifications/' in text:
            self.post(text)
            if '"notifications/initialized"' in text:
                threading.Thread(target=self.request, args=("GET", None), daemon=True).start()
        else:
            threading.Thread(target=self.post, args=(text,), daemon=True).start()

    def post(self, text):
        self.request("POST", text.encode())

    def request(self, method, body):
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"}
        link = http.client.HTTPConnection("127.0.0.1", self.port)
        self.links.append(link)
        try:
            link.request(method, "/mcp", body, headers)
            response = link.getresponse()
            self.session = response.getheader("mcp-session-id") or self.session
            if "event-stream" in (response.getheader("content-type") or ""):
                for line in response:
                    if line.startswith(b"data:") and line[5:].strip():
                        self.got.put(line[5:].decode())
            elif data := response.read():
                self.got.put(data.decode())
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass

    def close(self):
        for link in self.links:
            if link.sock:
                link.sock.close()


class Mux:
    def __init__(self, command, kind):
        self.folder = tempfile.mkdtemp(prefix="lumen-muxes-")
        self.socket, self.log = f"{self.folder}/s", f"{self.folder}/log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.kind = kind
        server = [sys.executable, os.path.abspath(__file__), "--serve", self.log]
        words = []
        for word in shlex.split(command):
            if word in ("{server}", "{args}"):
                words += server if word == "{server}" else server[1:]
            else:
                words.append(word.format(socket=self.socket, port=self.port, exe=server[0]))
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(f"{self.folder}/err", "w"))
        self.wait(self.is_serving, 4 * LIMIT)
        self.clients = []

    def is_serving(self):
        try:
            if self.kind is Line:
                socket.socket(socket.AF_UNIX).connect(self.socket)
            else:
                socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except OSError:
            return False

    def wait(self, is_so, limit=LIMIT):
        end = time.monotonic() + limit
        while not is_so():
            if time.monotonic() > end:
                raise TimeoutError(is_so.__name__)
            time.sleep(0.02)

    def client(self):
        client = self.kind(self)
        self.clients.append(client)
        return client

    def greeted(self, capabilities="{}"):
        client = self.client()
        client.send(hello("0", capabilities))
        answer = hear(client, 0)
        assert "result" in answer, f"the handshake is answered by {answer.get('error')}"
        client.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return client

    def lines(self, *needles):
        text = open(self.log).read().splitlines() if os.path.exists(self.log) else []
        return [line for line in text if all(needle in line for needle in needles)]

    def servers(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if self.log.encode() in open(f"/proc/{pid}/cmdline", "rb").read() and int(pid) != self.process.pid:
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def end(self):
        self.process.kill()
        self.process.wait()
        for pid in self.servers():
            os.kill(pid, signal.SIGKILL)


def hello(ident, capabilities="{}"):
    return (
        '{"jsonrpc":"2.0","id":%s,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":%s,'
        '"clientInfo":{"name":"c","version":"1"}}}' % (ident, capabilities)
    )


def call(ident, tool, arguments="{}", meta=""):
    return '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s%s}}' % (ident, tool, arguments, meta)


def hear(client, ident=..., raw=False):
    """The next message, or the answer to an id; others are put aside for nobody."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            text = client.got.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            raise AssertionError("nothing comes" if ident is ... else f"no answer to {ident!r}") from None
        if text is None:
            raise AssertionError("the connection is closed")
        message = json.loads(text)
        if ident is ... or ("method" not in message and message.get("id", "none") == ident and type(message["id"]) is type(ident)):
            return text if raw else message


def fails(answer):
    assert "error" in answer, f"no error: {answer}"


def rest(client, seconds=1.0):
    """All that still comes."""
    time.sleep(seconds)
    found = []
    while not client.got.empty():
        if text := client.got.get():
            found.append(json.loads(text))
    return found


# --------------------------------------------------------------------------------------------------------- the cases


def o_07_a_server_dies_inside_a_line(mux):
    a = mux.greeted()
    a.send(call("4", "half"))
    fails(hear(a, 4))


def o_08_each_request_in_flight_at_a_crash_is_answered(mux):
    a, b = mux.greeted(), mux.greeted()
    a.send(call("7", "wait"))
    a.send(call('"8"', "wait"))
    mux.wait(lambda: len(mux.lines('"wait"')) == 2)
    b.send(call("1", "crash"))
    fails(hear(b, 1))
    # In whichever order.
    answers = []
    while len(answers) < 2:
        message = hear(a)
        if "method" not in message:
            fails(message)
            answers.append(json.dumps(message["id"]))
    assert sorted(answers) == ['"8"', "7"], answers


def o_09_a_request_during_a_restart_keeps_its_id(mux):
    a = mux.greeted()
    a.send(call("4", "crash"))
    mux.wait(lambda: not mux.servers() or len(mux.lines("start")) > 1)
    a.send(call("99", "echo"))
    hear(a, 99)


def o_10_a_notification_during_a_restart_does_no_harm(mux):
    a = mux.greeted()
    a.send(call("4", "crash"))
    mux.wait(lambda: not mux.servers() or len(mux.lines("start")) > 1)
    a.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}')
    time.sleep(1)
    assert mux.process.poll() is None, "it has ended"


def o_11_zero_and_the_empty_string_are_ids(mux):
    a = mux.greeted()
    for ident in (0, ""):
        a.send(call(json.dumps(ident), "echo", '{"x":1}'))
        assert hear(a, ident)["result"]["structuredContent"] == {"x": 1}


def o_12_the_id_null_is_refused(mux):
    a = mux.greeted()
    a.send(call("null", "echo"))
    a.send(call("1", "echo"))
    hear(a, 1)
    assert not mux.lines('"id":null'), "it is forwarded"


def o_13_numbers_are_not_rounded(mux):
    a = mux.greeted()
    a.send(call("12345678901234567890", "numbers", '{"a":9007199254740993,"f":1.0}'))
    text = hear(a, 12345678901234567890, raw=True)
    assert '"n":9007199254740993' in text and '"f":1.0' in text and '"kept":true' in text, text


def o_14_ids_that_look_alike_are_told_apart(mux):
    a, b = mux.greeted(), mux.greeted()
    for client, who in ((a, "a"), (b, "b")):
        client.send(call("1", "echo", '{"who":"%s"}' % who))
        client.send(call('"1"', "echo", '{"who":"%s!"}' % who))
        client.send(call('"q\\"uote"', "echo", '{"who":"%s?"}' % who))
    for client, who in ((a, "a"), (b, "b")):
        found = {}
        for _ in range(3):
            message = hear(client)
            found[json.dumps(message["id"])] = message["result"]["structuredContent"]["who"]
        assert found == {"1": who, '"1"': who + "!", '"q\\"uote"': who + "?"}, found


def o_15_a_cancel_reaches_the_server_under_its_id(mux):
    a, b = mux.greeted(), mux.greeted()
    b.send(call("50", "wait", '{"who":"b"}'))
    mux.wait(lambda: mux.lines('"who"', '"b"'))
    a.send(call("50", "wait", '{"who":"a"}'))
    mux.wait(lambda: mux.lines('"who"', '"a"'))
    wire = json.loads(mux.lines('"who"', '"a"')[0])["id"]
    a.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":50}}')
    mux.wait(lambda: mux.lines("notifications/cancelled"))
    told = json.loads(mux.lines("notifications/cancelled")[0])["params"]["requestId"]
    assert told == wire, f"the server knows it as {wire!r} and is told of {told!r}"


def o_16_progress_goes_to_its_owner(mux):
    a, b = mux.greeted(), mux.greeted()
    a.send(call("1", "progress", '{"n":1}', ',"_meta":{"progressToken":1}'))
    b.send(call("1", "progress", '{"n":2}', ',"_meta":{"progressToken":1}'))
    for client, n in ((a, 1), (b, 2)):
        notes = [one["params"] for one in rest(client, 1.5) if one.get("method") == "notifications/progress"]
        assert {"progressToken": 1, "progress": n} in notes, "its own does not come"
        assert all(note["progress"] in (n, 99) for note in notes), "it gets the other client's as well"


def o_17_two_clients_cause_one_handshake(mux):
    a, b = mux.client(), mux.client()
    a.send(hello('"a"'))
    b.send(hello("7"))
    for answer in (hear(a, "a"), hear(b, 7)):
        assert "result" in answer, f"a handshake is answered by {answer.get('error')}"


def o_17_many_share_one_server(mux):
    clients = [mux.greeted() for _ in range(8)]
    for client in clients:
        client.send(call("1", "echo", '{"x":1}'))
    for client in clients:
        hear(client, 1)
    assert len(mux.lines("start")) == 1, f"{len(mux.lines('start'))} servers"


def o_18_a_server_asks_the_one_it_works_for(mux):
    b, a = mux.greeted('{"roots":{}}'), mux.greeted('{"roots":{}}')
    a.send(call("1", "ask"))
    while (asked := hear(a)).get("method") != "roots/list":
        pass
    a.send('{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}' % json.dumps(asked["id"]))
    assert hear(a, 1)["result"]["structuredContent"] == {"reply": {"roots": []}}
    others = [one for one in rest(b) if one.get("method") == "roots/list"]
    assert not others, "the other is asked too"


def o_19_a_server_started_again_is_greeted(mux):
    a = mux.greeted()
    a.send(call("1", "crash"))
    mux.wait(lambda: not mux.servers() or len(mux.lines("start")) > 1)
    for ident in range(2, 8):
        time.sleep(1)
        a.send(call(str(ident), "echo", '{"x":1}'))
        if "result" in hear(a, ident):
            return
    raise AssertionError("it never answers again")


def o_20_who_vanishes_while_written_to_harms_nobody(mux):
    a, b = mux.greeted(), mux.greeted()
    a.send(call("1", "big"))
    mux.wait(lambda: mux.lines('"big"'))
    a.close()
    b.send(call("2", "echo", '{"x":1}'))
    hear(b, 2)


def o_24_when_it_is_killed_nobody_is_left(mux):
    mux.greeted()
    assert mux.servers()
    mux.process.kill()
    mux.process.wait()
    end = time.monotonic() + 3
    while mux.servers() and time.monotonic() < end:
        time.sleep(0.05)
    assert not mux.servers(), "the server is left"


def main():
    words = sys.argv[1:]
    if words[:1] == ["--serve"]:
        return serve(words[1])
    muxes = [word.split("=", 1) for word in words]
    if not muxes or any(len(mux) != 2 for mux in muxes):
        sys.exit(__doc__)
    cases = [(name, case) for name, case in globals().items() if name.startswith("o_")]
    print("| | " + " | ".join(name for name, _ in muxes) + " |")
    print("|---|" + "---|" * len(muxes))
    counts = collections.Counter()
    for name, case in cases:
        row = []
        for who, command in muxes:
            mux = None
            try:
                mux = Mux(command, Http if "{port}" in command else Line)
                case(mux)
                row.append("yes")
                counts[who] += 1
            except Exception as error:  # Whatever went wrong, the case did not pass.
                words = f"{type(error).__name__}: {error}" if not isinstance(error, AssertionError) else str(error)
                row.append("no: " + " ".join(words.split())[:90].replace("|", "/"))
            finally:
                if mux:
                    mux.end()
        number, _, words = name.removeprefix("o_").partition("_")
        print(f"| O-{number}: {words.replace('_', ' ')} | " + " | ".join(row) + " |", flush=True)
    print("| of " + str(len(cases)) + " | " + " | ".join(str(counts[who]) for who, _ in muxes) + " |")


main()
