"""`mux_compare.py ALONE SHARED`: whether a client found the same with a server that it shared as with one of its own.

A server that offers more to clients that can do more sees one client, the mux, that can do all: what it offers besides is
allowed for tools, and named. `tasks` belong to one client, so a mux does not offer them, and it does not say of its clients that
they can be asked by URL. All else must be equal.
"""

import json
import sys

alone, shared = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])

for found in alone, shared:
    for hello in found, found.get("hello", {}), found.get("server", {}):
        if isinstance(hello.get("capabilities"), dict):
            hello["capabilities"].pop("tasks", None)

# Offered only to clients that can be asked by URL.
BY_URL = {"trigger-url-elicitation"}


def name(tool):
    return tool["name"] if isinstance(tool, dict) else tool


own, others = alone.pop("tools"), shared.pop("tools")
missing = [name(tool) for tool in own if tool not in others and name(tool) not in BY_URL]
more = [name(tool) for tool in others if tool not in own]
different = sorted(key for key in alone.keys() | shared.keys() if alone.get(key) != shared.get(key))
if missing or different:
    print(f"tools that it lacks or that differ: {missing}; different: {different}")
    for key in different:
        print(f"  {key} alone:  {json.dumps(alone.get(key), ensure_ascii=False)[:600]}")
        print(f"  {key} shared: {json.dumps(shared.get(key), ensure_ascii=False)[:600]}")
    sys.exit(1)
print("same" if not more else f"same, and {len(more)} more tools")
