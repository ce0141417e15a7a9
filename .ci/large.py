#!/usr/bin/env python3
"""Validates Kineto files of 2 GB, made from a small recording, and checks the counts and the peak memory (under 300 MB).

    large.py FOLDER [SIZE]

Three files, in FOLDER and removed afterwards: in the recorder's own order; in the worst order, with every call before every
operation; and that again, compressed.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

MEMORY_MB = 300
ROOT = pathlib.Path(__file__).resolve().parent.parent
# One graph launch of 676 kernels, 37 kernels besides, copies and sets, annotations and Python's functions; nothing lost.
SMALL = ROOT / "tests" / "traces" / "kineto" / "sglang_decode_qwen3_30b_a3b_B300.json.gz"
COMPARED = ["api_calls", "kernels", "memcpys", "memsets", "joined_kernels", "activity_without_launch", "launch_without_activity",
            "before_recording", "after_recording"]  # fmt: skip


def validate(lineage, path):
    """(what it found, seconds, peak in MB): the peak is the kernel's own figure, the largest the process ever was (VmHWM)."""
    out = path.parent / "summary.json"
    with open(out, "wb") as file:
        began = time.perf_counter()
        child = subprocess.Popen([lineage, "validate", "--json", path], stdin=subprocess.DEVNULL, stdout=file)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    if child.returncode not in (0, 1):
        sys.exit(f"large.py: {path.name}: exit status {child.returncode}")
    return json.loads(out.read_text()), seconds, usage.ru_maxrss * 1024 / 1e6


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    size = sys.argv[2] if len(sys.argv) > 2 else "2GB"
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "lineage-cli"], cwd=ROOT, check=True)
    lineage = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "release" / "lineage"
    wrong = []
    for name, options in [("large.json", []), ("large_by_category.json", ["--by-category"]), ("large_by_category.json.gz", ["--by-category"])]:
        path = folder / name
        beside = pathlib.Path(f"{path}.expected.json")
        try:
            subprocess.run([ROOT / "scripts" / "make-large-kineto", SMALL, path, size, *options], check=True)
            expected = json.loads(beside.read_text())
            found, seconds, peak = validate(lineage, path)
        finally:
            path.unlink(missing_ok=True)
            beside.unlink(missing_ok=True)
        summary = found["summary"]
        megabytes = expected["json_bytes"] / 1e6
        print(f"{name}: {seconds:.1f} s, {megabytes / seconds:.0f} MB/s of JSON, peak {peak:.0f} MB; {summary['kernels']} kernels, {summary['joined_kernels']} joined")
        wrong += [f"{name}: {key} is {summary[key]}, not {expected[key]}" for key in COMPARED if summary[key] != expected[key]]
        wrong += [f"{name}: {code} {count} times" for code, count in found["faults"].items() if code in ("L02", "L03", "L07")]
        if peak >= MEMORY_MB:
            wrong.append(f"{name}: {peak:.0f} MB of memory, {MEMORY_MB} MB are allowed")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
