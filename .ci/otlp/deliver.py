#!/usr/bin/env -S python3 -B
"""The example exports 500 requests to the official collector over gRPC, and over HTTP with gzip: all of it arrives, as it was.

    deliver.py FOLDER [REQUESTS]
"""

import pathlib
import subprocess
import sys

import metrics
from collectors import Collector, ensure, run
from exports import Server, example


def main(folder, requests=500):
    folder = pathlib.Path(folder).resolve()
    example("inference_server")  # before anything waits for it
    for protocol, compression in (("grpc", "none"), ("http", "gzip")):
        print(f"---- {protocol}, compression {compression}", flush=True)
        here = folder / protocol
        with Collector(here) as collector:
            url = collector.grpc if protocol == "grpc" else collector.http
            with Server(here, url, protocol, int(requests), compression) as server:
                server.finish()
            counts = collector.counts()
        # Ended, so all that it acknowledged is in its file.
        server.check(collector.traces)
        metrics.check(here / "metrics.json", server.ledger)
        spans = server.spans
        ensure((server.lost, spans["refused"]) == (0, 0), f"spans were lost or refused: {spans}")
        ensure(counts["accepted"] == counts["written"] == spans["sent"], f"the collector counts {counts}, the exporter {spans}")
        print(f"counted   {spans['sent']} spans sent by the exporter, {counts['accepted']} accepted by the collector; {server.seconds:.1f} s")
    # A small one, to be broken in every way.
    here = folder / "small"
    with Collector(here) as collector, Server(here, collector.grpc, "grpc", 20) as server:
        server.finish()
    done = subprocess.run([sys.executable, "-B", pathlib.Path(__file__).with_name("check_can_fail.py"), here])
    ensure(done.returncode == 0, "the check does not find what is wrong")


run(main)
