#!/usr/bin/env python3
"""Runs the example inference_server as a user does, in a release build, and checks what it says in its JSON.

    example.py sim   FOLDER [ROUNDS]   500 requests on the simulated GPU at both push settings, kernel by kernel and by graphs, then every break
    example.py real  FOLDER            without a device: every real CUPTI and libcuda that the environment names
"""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import time

COMMAND = ["cargo", "run", "--release", "--locked", "--quiet", "--example", "inference_server", "--"]
FIELDS = ["requests", "batches", "steps", "calls", "operations", "bound", "lost", "wrong", "unattributed"]
RATES = ["requests_per_second_off", "requests_per_second_on"]


class Failed(Exception):
    pass


def ensure(condition, what, ran):
    if not condition:
        raise Failed(f"{what}\n$ {' '.join(ran.command)}\nexit status {ran.status}\n{ran.text}\n{json.dumps(ran.json)}")


class Ran:
    """One run of the example."""

    def __init__(self, folder, arguments, environment=None):
        summary = folder / "summary.json"
        summary.unlink(missing_ok=True)
        self.command = [*COMMAND, *arguments, "--out", str(folder), "--json", str(summary)]
        began = time.monotonic()
        done = subprocess.run(
            self.command, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
        )
        self.seconds = time.monotonic() - began
        self.status, self.text = done.returncode, done.stdout + done.stderr
        self.json = json.loads(summary.read_text()) if summary.exists() else {}
        ensure("panicked" not in self.text, "something panicked", self)

    def faults(self, code):
        return self.json.get("faults", {}).get(code, 0)


def right(folder, requests, *more):
    """What must hold of a run in which nothing is broken."""
    ran = Ran(folder, ["--gpu", "sim", "--requests", str(requests), *more])
    found = ran.json
    ensure(ran.status == 0, "the exit status is not 0", ran)
    ensure(all(isinstance(found.get(name), int) for name in FIELDS), "a whole number is missing", ran)
    ensure(all(isinstance(found.get(name), float) and found[name] > 0 for name in RATES), "a rate is missing", ran)
    ensure(found["judged_by"] == "truth carried by data", "the joins were not judged by truth", ran)
    ensure((found["lost"], found["wrong"], found["faults"]) == (0, 0, {}), "lost or wrong joins, or faults", ran)
    ensure(found["requests"] == requests, "not every request was served", ran)
    # The program's text: a copy and a kernel for each prompt, four kernels and a copy for each step, a copy for each batch,
    # and one copy, the weights, that is no request's work. All of it is launched inside boundaries, so has both sources.
    # With graphs a step's four kernels are one call, and the states of what pads batches are copied to the device, too.
    graphs = "--graphs" in more
    steps, setup = found["steps"], 2 if graphs else 1
    bound = 2 * requests + 5 * steps + found["batches"]
    calls = bound + setup - (3 * steps if graphs else 0)
    counts = (found["bound"], found["joins"]["external_and_callback"], found["unattributed"], found["operations"], found["calls"])
    ensure(counts == (bound, bound, setup, bound + setup, calls), f"the counts are {counts}, and {bound} operations were launched for requests", ran)
    # Every replayed kernel's two owners are known, and were compared with the truth.
    replayed = found["graphs"]
    known = (replayed["replays"], replayed["known"], replayed["unknown"], replayed["judged"])
    ensure(known == ((steps, 4 * steps, 0, 4 * steps) if graphs else (0, 0, 0, 0)), f"of the replays it says {known}, and there were {steps} steps", ran)
    if graphs:
        ensure(1 <= replayed["executables"] <= 4, "a graph for each size of batch: 1, 2, 4, 8", ran)
    off, on = (found[name] for name in RATES)
    print(f"{' '.join(more)}: {found['operations']} operations in {found['steps']} steps, {bound} bound by both sources, 0 lost, 0 wrong; "
          f"{on:.0f} requests/s with lineage, {off:.0f} without; {ran.seconds:.1f} s")  # fmt: skip


def broken(folder, what, holds, *more):
    ran = Ran(folder, ["--gpu", "sim", "--requests", "120", "--arms", "1", "--break", what, *more])
    ensure(ran.status == 1, "the exit status is not 1", ran)
    ensure(ran.json.get("broken", 0) > 0, "nothing was broken", ran)
    ensure(holds(ran), "it was not noticed as it must be", ran)
    found = ran.json
    print(f"{' '.join(['--break', what, *more])}: {found['broken']} broken, {found['lost']} lost, {found['wrong']} wrong, faults {found['faults']}")


def sim(folder, rounds):
    for _ in range(rounds):
        for push in ["true", "false"]:
            for graphs in [[], ["--graphs"]]:
                right(folder, 500, "--sim-push-inside-enter", push, *graphs)
    for runtime, cupti in [("same", "12.9"), ("own", "13.5")]:
        for graphs in [[], ["--graphs"]]:
            right(folder, 100, "--arms=1", "--sim-runtime-calls", runtime, "--sim-cupti", cupti, *graphs)
    for graphs in [[], ["--graphs"]]:
        right(folder, 100, "--arms=1", "--tier", "explain", *graphs)
    for graphs in [[], ["--graphs"]]:
        broken(folder, "envelope", lambda ran: ran.faults("L05") == ran.json["broken"] and ran.faults("L01") > 0 and ran.json["lost"] > 0, *graphs)
        broken(folder, "swap", lambda ran: ran.json["wrong"] > 0, *graphs)
        broken(folder, "restore", lambda ran: ran.faults("W07") > 0 and ran.json["wrong"] > 0, *graphs)


def real(folder):
    """With a CUPTI, a libcuda or neither, and no device: a clear message and status 2, or the simulated GPU, never a panic."""
    cuptis = {"no libcupti": None, "CUPTI 12.9": os.environ["LINEAGE_CUPTI_12"], "CUPTI 13.5": os.environ["LINEAGE_CUPTI_13"]}
    drivers = {"no libcuda": None, "libcuda 535": os.environ["LINEAGE_LIBCUDA_535"], "libcuda 550": os.environ["LINEAGE_LIBCUDA_550"]}
    for (cupti, cupti_path), (driver, driver_path) in itertools.product(cuptis.items(), drivers.items()):
        path = ":".join(str(pathlib.Path(part).parent) for part in (cupti_path, driver_path) if part)
        environment = {"LD_LIBRARY_PATH": path}
        named = {"LINEAGE_CUPTI_LIBRARY": cupti_path} if cupti_path else {}
        ran = Ran(folder, ["--gpu", "real", "--requests", "8", "--arms", "1"], environment | named)
        ensure(ran.status == 2, "the exit status is not 2", ran)
        ensure("no usable real gpu" in ran.text and re.search(r"^ *next\b", ran.text, re.M), "the message is not clear", ran)
        first = next(line.strip() for line in ran.text.splitlines() if "no usable real gpu" in line)
        auto = Ran(folder, ["--gpu", "auto", "--requests", "40", "--arms", "1"], environment)
        ensure(auto.status == 0 and auto.json.get("simulated") is True, "auto did not go on with the simulated GPU", auto)
        print(f"{cupti}, {driver}: {first}; auto: {auto.json['gpu']}")


def main():
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cargo", "build", "--release", "--locked", "--example", "inference_server"], check=True)
    try:
        if what == "sim":
            sim(folder, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
        else:
            real(folder)
    except Failed as failure:
        sys.exit(f"example.py: {failure}")


main()
