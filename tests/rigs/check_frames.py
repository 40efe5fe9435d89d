"""Proves that bytes captured between two lumen processes are LUMEN: `check_frames.py probe|ack FILE`.

The first frame must be a PROBE (what the client side sent) or a PROBE_ACK (what the server side sent); all that follows
must be whole frames, among them at least one request (or response) that carries JSON-RPC as plain JSON text. Written
from the wire facts alone and sharing no code with lumen itself."""

import json
import sys

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


def kind_of(message):
    if "method" in message:
        return REQUEST if "id" in message else NOTIFY
    return RESPONSE


def check(side, data):
    first, wanted = {"probe": (PROBE, REQUEST), "ack": (PROBE_ACK, RESPONSE)}[side]
    seen = []
    for kind, flags, payload in frames(data):
        if kind not in NAMES or flags != 0:
            raise ValueError(f"frame {len(seen)}: type {kind:#04x}, flags {flags:#04x}")
        message = json.loads(payload.decode())
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
    return seen


if __name__ == "__main__":
    try:
        with open(sys.argv[2], "rb") as captured:
            check(sys.argv[1], captured.read())
    except (ValueError, IndexError, OSError) as error:
        sys.exit(f"{sys.argv[1]} side: {error!r}")
