#!/usr/bin/env -S python3 -B
"""rotel, a collector that shares no code with the official one, accepts the export over gRPC and HTTP, and shows its links and
events. What it passes on to the official one is checked as if that had received it first.

    second.py FOLDER [REQUESTS]        LINEAGE_ROTEL names the program: eval "$(scripts/fetch-parts rotel)"
"""

import json
import pathlib
import time

from collectors import Collector, Rotel, ensure, run
from exports import Server, example


def main(folder, requests=100):
    folder = pathlib.Path(folder).resolve()
    example("inference_server")  # before anything waits for it
    for protocol, compression in (("grpc", "gzip"), ("http", "gzip")):
        here = folder / f"rotel-{protocol}"
        with Collector(here) as collector:
            with Rotel(here, collector.grpc) as rotel:
                url = rotel.grpc if protocol == "grpc" else rotel.http
                with Server(here, url, protocol, int(requests), compression) as server:
                    server.finish()
                wait_for(collector, server.spans["sent"])
                time.sleep(0.5)  # its log
        server.check(collector.traces)
        shown, came = rotel.shown(), received(collector.traces)
        ensure(shown == came, f"rotel shows {shown}, and {came} came through it")
        ensure(shown["spans"] == server.spans["sent"], f"{server.spans} were sent")
        ensure(shown["links"] > shown["spans"] // 4 and shown["events"] > 0, "hardly any link or no event")
        print(f"rotel     over {protocol}: its log shows {shown['spans']} spans, {shown['links']} links, {shown['events']} events, as sent")


def wait_for(collector, spans):
    """Until all has been passed on: rotel holds spans back for a moment, to make batches of them."""
    deadline = time.monotonic() + 30
    while collector.counts()["accepted"] < spans:
        ensure(time.monotonic() < deadline, f"rotel passed on {collector.counts()} of {spans} spans")
        time.sleep(0.1)


def received(traces):
    found = {"spans": 0, "links": 0, "events": 0}
    for line in traces.read_text().splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    found["spans"] += 1
                    found["links"] += len(span.get("links", []))
                    found["events"] += len(span.get("events", []))
    return found


run(main)
