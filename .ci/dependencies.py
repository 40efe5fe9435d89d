"""Checks what the workspace depends on against deny.toml: licences, packages in two versions, sources.

`cargo deny check` reads the same file and does more, security advisories above all; it is not used here because it takes
longer to build than the workspace and needs a database from outside. Run it by hand before a release.
"""

import json
import re
import subprocess
import sys
import tomllib


def allowed(expression, licences):
    """Tells whether an SPDX expression can be met with `licences`."""
    words = [
        word if word in ("(", ")") else {"AND": "and", "OR": "or"}.get(word) or str(word in licences)
        for word in re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR ").replace(" WITH ", "-WITH-"))
    ]
    return eval(" ".join(words), {"__builtins__": {}})


def main():
    with open("deny.toml", "rb") as file:
        rules = tomllib.load(file)
    licences = {name.replace(" WITH ", "-WITH-") for name in rules["licenses"]["allow"]}
    exceptions = {item["crate"]: set(item["allow"]) for item in rules["licenses"].get("exceptions", [])}
    twice = {skip["crate"].split("@")[0] for skip in rules["bans"].get("skip", [])}

    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
    command += [word for triple in rules["graph"]["targets"] for word in ("--filter-platform", triple)]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    used = {node["id"] for node in metadata["resolve"]["nodes"]}

    problems, versions = [], {}
    packages = [package for package in metadata["packages"] if package["id"] in used]
    registries = {package["source"] for package in packages if package["source"]}
    if len(registries) != 1 or not registries.pop().startswith("registry+"):
        problems.append("something comes from elsewhere than the one registry")
    for package in packages:
        name = f"{package['name']} {package['version']}"
        versions.setdefault(package["name"], []).append(package["version"])
        if not allowed(package["license"] or "none", licences | exceptions.get(package["name"], set())):
            problems.append(f"{name}: licence {package['license']}")
    for name, found in versions.items():
        if len(found) > 1 and name not in twice:
            problems.append(f"{name}: in versions {', '.join(sorted(found))}")
    problems += [f"{name}: skipped in deny.toml without need" for name in twice if len(versions.get(name, [])) < 2]

    for problem in problems:
        print(problem)
    print(f"{len(used)} packages, {len(problems)} problems")
    sys.exit(bool(problems))


main()
