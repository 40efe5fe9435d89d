"""Proves that bytes captured between two lumen processes are LUMEN: `check_frames.py probe|ack FILE`.

The first frame must be a PROBE (what the client side sent) or a PROBE_ACK (what the server side sent); all that follows
must be whole frames, among them at least one request (or response) and at least one compressed message. Written from
the wire facts alone and sharing no code with lumen itself."""

import json
import struct
import sys

WORDS = """
tool arguments result error id name description content text type method params jsonrpc data code message
input output stream uri mimeType encoding language title value key path version schema default required properties
resources tools prompts resource prompt handler capabilities permissions
scope tags category icon metadata timestamp status progress
severity details cause stack line column source retry timeout limit offset count total page cursor next
model provider temperature max_tokens stop frequency_penalty presence_penalty top_p
logprobs user system assistant function tool_calls finish_reason usage
url http_method headers body query http_status cookie session token auth redirect host port origin referrer agent
filename directory extension size modified created accessed mode owner group symlink binary base64 hash algorithm chunk
execute read write delete update create search list get set watch subscribe notify cancel pause resume
""".split()
assert len(WORDS) == 128

REQUEST, RESPONSE, NOTIFY, PROBE, PROBE_ACK = 0x01, 0x02, 0x03, 0x0F, 0x10
NAMES = {REQUEST: "REQUEST", RESPONSE: "RESPONSE", NOTIFY: "NOTIFY", PROBE: "PROBE", PROBE_ACK: "PROBE_ACK"}


def length(data, at):
    """Reads a length in its smallest form; returns it and where it ends."""
    first = data[at]
    if first <= 0x3F:
        return first, at + 1
    width, least = {0x80: (2, 64), 0xC0: (4, 65536)}.get(first, (0, 0))
    if not width:
        raise ValueError(f"{first:#04x} at {at} is no length: {data[at:at + 40]!r}")
    value = int.from_bytes(data[at + 1 : at + 1 + width], "little")
    if value < least:
        raise ValueError(f"the length {value} at {at} is not in its smallest form")
    return value, at + 1 + width


def frames(data):
    at = 0
    while at < len(data):
        size, at = length(data, at)
        kind, flags, payload = data[at], data[at + 1], data[at + 2 : at + 2 + size]
        at += 2 + size
        if at > len(data):
            raise ValueError(f"the last frame says {size} bytes and has {len(payload)}")
        yield kind, flags, payload


class Value:
    """Decodes one value."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise ValueError(f"the value ends early: {self.data!r}")
        self.at += count
        return self.data[self.at - count : self.at]

    def size(self):
        value, self.at = length(self.data, self.at)
        return value

    def integer(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def key(self):
        first = self.take(1)[0]
        return self.take(self.size()).decode() if first == 0xFF else WORDS[first]

    def value(self):
        tag = self.take(1)[0]
        if tag == 0xE0:
            return None
        if tag == 0xE1:
            return {0: False, 1: True}[self.take(1)[0]]
        if tag == 0xE2:
            return struct.unpack("<d", self.take(8))[0]
        if tag == 0xE3:
            return self.integer()
        if tag == 0xE4:
            return WORDS[self.take(1)[0]]
        if tag == 0xE5:
            return self.take(self.size()).decode()
        if tag == 0xE6:
            return [self.value() for _ in range(self.size())]
        if tag == 0xE7:
            return {self.key(): self.value() for _ in range(self.size())}
        raise ValueError(f"tag {tag:#04x} at {self.at - 1} of {self.data!r}")

    def whole(self):
        value = self.value()
        if self.at != len(self.data):
            raise ValueError(f"bytes after the value: {self.data!r}")
        return value


def kind_of(message):
    if "method" in message:
        return REQUEST if "id" in message else NOTIFY
    return RESPONSE


def check(side, data):
    first, wanted = {"probe": (PROBE, REQUEST), "ack": (PROBE_ACK, RESPONSE)}[side]
    seen, compressed = [], 0
    for kind, flags, payload in frames(data):
        if kind not in NAMES or flags not in (0, 1):
            raise ValueError(f"frame {len(seen)}: type {kind:#04x}, flags {flags:#04x}")
        message = Value(payload).whole() if flags else json.loads(payload.decode())
        compressed += flags
        if kind in (PROBE, PROBE_ACK):
            if not seen and not payload.endswith(b"\n"):
                raise ValueError(f"the payload of the first {NAMES[kind]} does not end in a line feed")
            if message.get("v") != 1 or not isinstance(message.get("caps"), list):
                raise ValueError(f"frame {len(seen)}: {NAMES[kind]} with {payload!r}")
        elif kind != kind_of(message):
            raise ValueError(f"frame {len(seen)}: {NAMES[kind]} with {payload!r}")
        seen.append(kind)
    if not seen or seen[0] != first:
        raise ValueError(f"does not start with {NAMES[first]}: {data[:40]!r}")
    if wanted not in seen:
        raise ValueError(f"holds no {NAMES[wanted]}")
    if not compressed:
        raise ValueError("holds no compressed message")
    return seen


if __name__ == "__main__":
    try:
        with open(sys.argv[2], "rb") as captured:
            check(sys.argv[1], captured.read())
    except (ValueError, IndexError, OSError) as error:
        sys.exit(f"{sys.argv[1]} side: {error!r}")
