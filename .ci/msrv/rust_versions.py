#!/usr/bin/env python3
"""Every crate that our packages are built with (not what only tests use) declares a rust-version that is ours or lower."""

import json
import subprocess
import sys


def version(text):
    return tuple(int(part) for part in (text.split(".") + ["0", "0"])[:3])


metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]))
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
ours = set(metadata["workspace_members"])

declared = {packages[member]["rust_version"] for member in ours}
if len(declared) != 1 or None in declared:
    sys.exit(f"the workspace's packages declare different rust-versions: {declared}")
minimum = declared.pop()

# What is reached from our packages over normal and build dependencies, on any platform.
reached, waiting = set(), list(ours)
while waiting:
    current = waiting.pop()
    if current in reached:
        continue
    reached.add(current)
    for dependency in nodes[current]["deps"]:
        if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
            waiting.append(dependency["pkg"])


def asks_for_more(ids):
    found = [packages[i] for i in ids if packages[i]["rust_version"] and version(packages[i]["rust_version"]) > version(minimum)]
    return sorted(f'{package["name"]} {package["version"]} (rust-version {package["rust_version"]})' for package in found)


silent = sum(1 for i in reached if not packages[i]["rust_version"])
print(f"{len(reached)} crates built with rust-version {minimum}: {len(reached) - silent} declare it or less, {silent} declare none")
if tests := asks_for_more(nodes.keys() - reached):
    print("only in tests, and asking for more: " + ", ".join(tests))
if too_new := asks_for_more(reached):
    sys.exit("asking for more than " + minimum + ":\n" + "\n".join(too_new))
