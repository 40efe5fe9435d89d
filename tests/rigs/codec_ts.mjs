// Compares lumen's value codec with that of npm @gonzalomonzonc/mcp-transport: `codec_ts.mjs RIG_CODEC COUNT`.
//
// As codec_py.py. Left out of "encoded alike" are documents that JavaScript itself does not hold as they were written: those
// with a key twice, and those with a key that is an array index, which every object puts first.

import { execFileSync } from "node:child_process";
import peer from "@gonzalomonzonc/mcp-transport";

const [rigCodec, count] = [process.argv[2], Number(process.argv[3])];
const [REQUEST, RESPONSE, NOTIFY, COMPRESSED] = [0x01, 0x02, 0x03, 0x01];
const run = (args, input) =>
    execFileSync(rigCodec, args, { input, maxBuffer: 1 << 30 }).toString().split("\n").slice(0, -1);
const hex = (bytes) => Buffer.from(bytes).toString("hex");

// Equality that tells 0 from -0, and one order of members from another.
function same(one, other) {
    if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) {
        return Object.is(one, other);
    }
    const [keys, others] = [Object.keys(one), Object.keys(other)];
    return (
        Array.isArray(one) === Array.isArray(other) &&
        keys.length === others.length &&
        keys.every((key, at) => key === others[at] && same(one[key], other[key]))
    );
}

// How many members the text has, each key counted as often as it stands there.
function membersWritten(text) {
    return [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon).length;
}

function membersHeld(document) {
    if (typeof document !== "object" || document === null) return 0;
    const own = Array.isArray(document) ? 0 : Object.keys(document).length;
    return Object.values(document).reduce((sum, value) => sum + membersHeld(value), own);
}

function hasIndexKey(document) {
    if (typeof document !== "object" || document === null) return false;
    const isIndex = (key) => /^(0|[1-9]\d*)$/.test(key) && Number(key) < 2 ** 32 - 1;
    return (
        (!Array.isArray(document) && Object.keys(document).some(isIndex)) || Object.values(document).some(hasIndexKey)
    );
}

function kindOf(document) {
    if ("method" in document) return "id" in document ? REQUEST : NOTIFY;
    return RESPONSE;
}

function build(document, flags, payload) {
    const wire = new Uint8Array(peer.buildSize(payload.length));
    peer.buildFrame(kindOf(document), flags, payload, wire);
    return wire;
}

const rows = run(["write", "ts", String(count)]).map((line) => line.split("\t"));
const failures = [];
const back = [];
let [compressed, plain, alike, leftOut] = [0, 0, 0, 0];
let assembler = new peer.FrameAssembler();
for (const [text, value, frameHex] of rows) {
    const document = JSON.parse(text);
    const wire = new Uint8Array(Buffer.from(frameHex, "hex"));
    // In two pieces, cut somewhere else each time.
    const cut = back.length % wire.length;
    const frames = [...assembler.push(wire.slice(0, cut)), ...assembler.push(wire.slice(cut))];
    if (frames.length !== 1 || frames[0].frameType !== kindOf(document)) {
        failures.push(`read as ${JSON.stringify(frames)}: ${text}`);
        assembler = new peer.FrameAssembler();
        continue;
    }
    const { flags, payload } = frames[0];
    if (value === "plain") {
        plain += 1;
        const read = new TextDecoder("utf-8", { fatal: true }).decode(payload);
        if (flags !== 0 || read !== text || !same(JSON.parse(read), document)) {
            failures.push(`plain, but not the text: ${text}`);
        }
        back.push([build(document, 0, new TextEncoder().encode(text)), document]);
        continue;
    }
    compressed += 1;
    if (flags !== COMPRESSED || hex(payload) !== value) failures.push(`not compressed: ${text}`);
    for (const decode of [peer.decompressValue, peer.decompressValueZeroAlloc]) {
        const decoded = decode(payload);
        if (!same(decoded, document)) failures.push(`decoded to ${JSON.stringify(decoded)}: ${text}`);
    }
    const encoded = build(document, COMPRESSED, peer.compressValue(document));
    back.push([encoded, document]);
    if (membersWritten(text) !== membersHeld(document) || hasIndexKey(document)) {
        leftOut += 1;
    } else if (hex(encoded) !== frameHex) {
        failures.push(`encoded to ${hex(encoded)}, not ${frameHex}: ${text}`);
    } else {
        alike += 1;
    }
}
const texts = run(["read"], back.map(([frame]) => `${hex(frame)}\n`).join(""));
if (texts.length !== back.length) failures.push(`${texts.length} of ${back.length} came back`);
texts.forEach((text, at) => {
    const [frame, document] = back[at];
    if (!same(JSON.parse(text), document)) failures.push(`${hex(frame)} came back as ${text}`);
});
for (const failure of failures.slice(0, 10)) console.log(failure.slice(0, 2000));
console.log(
    `ts: ${rows.length} messages: ${compressed} compressed, ${alike} of them encoded alike (${leftOut} with a key twice or ` +
        `like an index left out), ${plain} plain; ${texts.length} back; ${failures.length} differences`,
);
const empty = rows.length !== count || !compressed || !alike || !plain || !texts.length;
process.exitCode = failures.length > 0 || empty ? 1 : 0;
