"""Prints how the value codec compares, from what criterion measured: `ratios.py [FOLDER..]`, by default target/criterion.

A figure says how many times as fast as the first row of its table a way is. Of all samples of a way, in all folders, the best
one counts: the others are what else the machine did."""

import json
import os
import pathlib
import sys

MESSAGES = ["call_small", "result_small", "tools50", "text1m", "escapes64k", "numbers1k"]
TABLES = {"encode": "serde_json", "decode": "serde_json", "from_json": "by_value", "to_json": "by_value"}


def best(folder):
    sample = json.loads((folder / "sample.json").read_text())
    return min(time / count for time, count in zip(sample["times"], sample["iters"]))


def main(roots):
    measured = {}
    for file in [file for root in roots for file in root.rglob("new/benchmark.json")]:
        benchmark = json.loads(file.read_text())
        name = benchmark["group_id"], benchmark["function_id"]
        measured[name] = min(best(file.parent), measured.get(name, float("inf")))
    for table, first in TABLES.items():
        groups = [f"value/{table}/{message}" for message in MESSAGES]
        ways = {way for group, way in measured if group in groups}
        if not all((group, first) in measured for group in groups):
            sys.exit(f"not all of {table} has been measured")
        print(f"\n| {table} | " + " | ".join(MESSAGES) + " |")
        print("|---|" + "---:|" * len(MESSAGES))
        for way in sorted(ways, key=lambda way: (way != first, way)):
            ratios = [measured[group, first] / measured[group, way] for group in groups]
            print(f"| {way} | " + " | ".join(f"{ratio:.{0 if ratio >= 10 else 1}f}" for ratio in ratios) + " |")


target = os.environ.get("CARGO_TARGET_DIR", pathlib.Path(__file__).parent.parent / "target")
main([pathlib.Path(folder) for folder in sys.argv[1:]] or [pathlib.Path(target) / "criterion"])
