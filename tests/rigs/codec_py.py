"""Compares lumen's value codec with that of PyPI lumen-mcp: `codec_py.py RIG_CODEC COUNT`.

RIG_CODEC makes up the messages and their frames. Each frame goes through the peer's own frame reader. A compressed one must
be read as the document that the JSON text is, and the peer's encoder must make the same bytes of that document; a plain one
must hold the JSON text. Back, the frames that the peer builds must be read by RIG_CODEC as the same documents."""

import json
import struct
import subprocess
import sys

from lumen import FrameAssembler, build_frame, compress_value, decompress_value, is_compressed

REQUEST, RESPONSE, NOTIFY, COMPRESSED = 0x01, 0x02, 0x03, 0x01
KEPT_OUT = "with a key twice"


class Twice(Exception):
    """An object has a key twice: a dict holds one of the two."""


def members(pairs):
    document = dict(pairs)
    if len(document) != len(pairs):
        raise Twice
    return document


def has_key_twice(text):
    try:
        json.loads(text, object_pairs_hook=members)
    except Twice:
        return True
    return False


def same(one, other):
    """Equality that tells 1 from 1.0 and from True, 0.0 from -0.0, and one order of members from another."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    return one == other


def kind_of(document):
    if "method" in document:
        return REQUEST if "id" in document else NOTIFY
    return RESPONSE


def run(*command, stdin=None):
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")[:-1]


def main(rig_codec, count):
    rows = [line.split("\t") for line in run(rig_codec, "write", "py", str(count))]
    failures, compressed, plain, alike, twice, back = [], 0, 0, 0, 0, []
    assembler = FrameAssembler()
    for text, value, wire in rows:
        document, wire = json.loads(text), bytes.fromhex(wire)
        # In two pieces, cut somewhere else each time.
        cut = len(back) % len(wire)
        frames = assembler.push(wire[:cut]) + assembler.push(wire[cut:])
        if len(frames) != 1 or frames[0].frame_type != kind_of(document):
            failures.append(f"read as {frames}: {text}")
            assembler.reset()
            continue
        [frame] = frames
        if value == "plain":
            plain += 1
            if frame.flags != 0 or frame.payload != text.encode() or not same(json.loads(frame.payload), document):
                failures.append(f"plain, but not the text: {text}")
            back.append((build_frame(kind_of(document), 0, text.encode()), document))
            continue
        compressed += 1
        if frame.flags != COMPRESSED or not is_compressed(frame) or frame.payload.hex() != value:
            failures.append(f"not compressed: {text}")
        if not same(decompress_value(frame.payload), document):
            failures.append(f"decoded to {decompress_value(frame.payload)!r}: {text}")
        encoded = build_frame(kind_of(document), COMPRESSED, compress_value(document))
        back.append((encoded, document))
        if has_key_twice(text):
            twice += 1
        elif encoded.to_bytes() != wire:
            failures.append(f"encoded to {encoded.payload.hex()}, not {value}: {text}")
        else:
            alike += 1
    texts = run(rig_codec, "read", stdin="".join(f"{frame.to_bytes().hex()}\n" for frame, _ in back).encode())
    if len(texts) != len(back):
        failures.append(f"{len(texts)} of {len(back)} came back")
    for text, (frame, document) in zip(texts, back):
        if not same(json.loads(text), document):
            failures.append(f"{frame.payload.hex()} came back as {text}")
    for failure in failures[:10]:
        print(failure[:2000])
    print(
        f"py: {len(rows)} messages: {compressed} compressed, {alike} of them encoded alike ({twice} {KEPT_OUT} left out), "
        f"{plain} plain; {len(texts)} back; {len(failures)} differences"
    )
    empty = len(rows) != count or not all((compressed, alike, plain, texts))
    return 1 if failures or empty else 0


sys.exit(main(sys.argv[1], int(sys.argv[2])))
