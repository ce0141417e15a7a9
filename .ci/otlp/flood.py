#!/usr/bin/env -S python3 -B
"""A million spans in bursts of 100,000 a second against the official collector: at least 99 % arrive within 120 s, the queue
stays within 64 MiB, and what is lost is counted on both sides.

    flood.py FOLDER [SPANS] [RATE]
"""

import json
import pathlib
import subprocess
import time

from collectors import ROOT, Collector, ensure, run

QUEUE = 64 << 20


def main(folder, spans=1_000_000, rate=100_000):
    spans, folder = int(spans), pathlib.Path(folder).resolve()
    program = ["cargo", "run", "--release", "--locked", "--quiet", "-p", "lineage-otlp", "--example", "flood", "--"]
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "lineage-otlp", "--example", "flood"], cwd=ROOT, check=True)
    for protocol in ("grpc", "http/protobuf"):
        with Collector(folder / f"flood-{protocol.replace('/', '-')}", memory_mib=2048) as collector:
            url = collector.grpc if protocol == "grpc" else collector.http
            began = time.monotonic()
            asked = ("--endpoint", url, "--protocol", protocol, "--spans", str(spans), "--rate", str(rate), "--json")
            done = subprocess.run([*program, *asked], cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=240)
            seconds = time.monotonic() - began
            ensure(done.returncode == 0, f"flood's exit status is {done.returncode}\n{done.stdout}")
            said, counts, memory = json.loads(done.stdout), collector.counts(), collector.most_memory_mb()
        lost, (came, twice) = sum(said["lost"].values()), written(collector.traces)
        print(f"flood     {protocol}: {said['offered']} spans at {rate}/s, {came} came ({100 * came / spans:.2f} %) in {seconds:.1f} s, "
              f"{lost} lost {said['lost']}, {said['refused']} refused, {twice} twice; queue at most {said['queue_bytes_most'] / 2**20:.1f} MiB; "
              f"collector: {counts}, at most {memory} MB", flush=True)  # fmt: skip
        ensure(said["offered"] == spans, "not all were offered")
        ensure(said["offered"] == said["sent"] + said["refused"] + lost, "the exporter's counts do not add up")
        ensure(counts["accepted"] == came + twice, "the collector counts otherwise than its file")
        # What the exporter says was sent came; of what it gave up, some may have come all the same.
        ensure(said["sent"] <= came <= said["sent"] + lost, "the two sides count otherwise")
        ensure(came >= 0.99 * spans, "fewer than 99 % came")
        ensure(seconds <= 120, "it took over 120 s")
        ensure(said["queue_bytes_most"] <= QUEUE, "the queue was larger than 64 MiB")
        collector.traces.unlink()


def written(path):
    """How many different spans are in the file, and how many came once more."""
    ids, count = set(), 0
    with open(path, "rb") as file:
        for line in file:
            for resource in json.loads(line)["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    count += len(scope["spans"])
                    ids.update(bytes.fromhex(span["traceId"] + span["spanId"]) for span in scope["spans"])
    return len(ids), count - len(ids)


run(main)
