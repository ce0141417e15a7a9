#!/usr/bin/env -S python3 -B
"""A million spans in bursts of 100,000 a second against the official collector: at least 99 % arrive within 120 s, the queue
stays within 64 MiB, and what is lost is counted on both sides.

    flood.py FOLDER [SPANS] [RATE] [grpc|http/protobuf]        both by default

Exporter and collector need two idle processors for it: on a busy machine the collector takes less than is offered, and what the
queue has no room for is lost, and counted.
"""

import json
import os
import pathlib
import subprocess
import time

from collectors import Collector, ensure, run
from exports import example

QUEUE = 64 << 20


def main(folder, spans=1_000_000, rate=100_000, *protocols):
    spans, folder = int(spans), pathlib.Path(folder).resolve()
    program = example("flood", "lineage-otlp")
    for protocol in protocols or ("grpc", "http/protobuf"):
        with Collector(folder / f"flood-{protocol.replace('/', '-')}", memory_mib=2048, traces_as="proto") as collector:
            url = collector.grpc if protocol == "grpc" else collector.http
            began, busy = time.monotonic(), os.getloadavg()[0]
            asked = ("--endpoint", url, "--protocol", protocol, "--spans", str(spans), "--rate", str(rate), "--json")
            done = subprocess.run([program, *asked], stdout=subprocess.PIPE, text=True, timeout=240)
            seconds = time.monotonic() - began
            ensure(done.returncode == 0, f"flood's exit status is {done.returncode}\n{done.stdout}")
            said, counts = json.loads(done.stdout), collector.counts()
            memory, cpu = collector.most_memory_mb(), collector.cpu_seconds()
        lost, (came, twice) = said["lost"], written(collector.traces)
        print(f"flood     {protocol}: {said['offered']} spans at {rate}/s, {came} came ({100 * came / spans:.2f} %) in {seconds:.1f} s, "
              f"{lost} lost ({said['lost_queue_full']} for want of room), {said['refused']} refused, {twice} twice; "
              f"queue at most {said['queue_bytes_most'] / 2**20:.1f} MiB; "
              f"collector: {counts}, at most {memory} MB, {cpu:.1f} s of processors", flush=True)  # fmt: skip
        ensure(said["offered"] == spans, "not all were offered")
        ensure(said["offered"] == said["sent"] + said["refused"] + lost, "the exporter's counts do not add up")
        ensure(counts["accepted"] == came + twice, "the collector counts otherwise than its file")
        # What the exporter says was sent came; of what it gave up, some may have come all the same.
        ensure(said["sent"] <= came <= said["sent"] + lost, "the two sides count otherwise")
        ensure(came >= 0.99 * spans, f"fewer than 99 % came; {busy:.1f} other processes wanted one of {os.cpu_count()} processors")
        ensure(seconds <= 120, "it took over 120 s")
        ensure(said["queue_bytes_most"] <= QUEUE, "the queue was larger than 64 MiB")
        collector.traces.unlink()


def written(path):
    """How many different spans are in the file of binary requests, and how many came once more."""
    ids, count = set(), 0
    with open(path, "rb") as file:
        while length := file.read(4):
            request = memoryview(file.read(int.from_bytes(length, "big")))
            # ExportTraceServiceRequest.resource_spans, ResourceSpans.scope_spans, ScopeSpans.spans; Span.trace_id and .span_id
            for resource in messages(request, 1):
                for scope in messages(resource, 2):
                    for span in messages(scope, 2):
                        ids.add(b"".join(next(messages(span, field)) for field in (1, 2)))
                        count += 1
    return len(ids), count - len(ids)


def messages(message, wanted):
    """The fields of this number, all of them length-delimited, as protobuf's encoding has them."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        kind = tag & 7
        if kind == 0:
            _, at = varint(message, at)
        elif kind == 2:
            length, at = varint(message, at)
            if tag >> 3 == wanted:
                yield message[at : at + length]
            at += length
        else:
            at += {1: 8, 5: 4}[kind]


def varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


run(main)
