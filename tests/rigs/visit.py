"""What all Python clients do with a server once they have connected: pick the call by the tools that it has, judge the
answer, print what they found as canonical JSON on stdout, or on stderr as `failure: ...` why it did not work."""

import json
import pathlib
import sys
import time

import anyio

CALLS = json.loads(pathlib.Path(__file__).with_name("calls.json").read_text())


def pick(tools):
    """The call of the rig that one of these tools takes."""
    names = {tool.name for tool in tools}
    return next(call for call in CALLS if call["name"] in names)


def judge(call, content):
    if not any(call["answer"] in getattr(part, "text", "") for part in content):
        raise ValueError(f"not the answer: {content}")


class FirstAnswer:
    """The time from its making until it is called."""

    def __init__(self):
        self.start = time.monotonic()

    def __call__(self):
        print(f"first answer after {round(1000 * (time.monotonic() - self.start))} ms", file=sys.stderr)


def plain(value):
    """What a value of pydantic's is in JSON."""
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def causes(error):
    if isinstance(error, BaseExceptionGroup):
        return [cause for part in error.exceptions for cause in causes(part)]
    return [error]


def main(visit):
    """Runs `visit` on the words of the command line; prints the members of the dict that it returns."""
    try:
        found = anyio.run(visit, *sys.argv[1:])
    except Exception as error:
        for cause in causes(error):
            print(f"failure: {type(cause).__name__} {getattr(cause, 'error', '')} {cause}", file=sys.stderr)
        sys.exit(1)
    found["tools"] = sorted((plain(tool) for tool in found["tools"]), key=lambda tool: tool["name"])
    found = {name: value if name == "tools" else plain(value) for name, value in found.items()}
    print(json.dumps(found, sort_keys=True, indent=1, ensure_ascii=False))
