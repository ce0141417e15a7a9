#!/usr/bin/env -S python3 -B
"""The collector goes away in the middle of a run and comes back: the server goes on, and nothing is lost without a count.

    restart.py FOLDER [term|kill] [REQUESTS]

term: by SIGTERM, as an operator does it. What came and what was counted as lost are together what was sent.
kill: by SIGKILL. The collector may lose what it had acknowledged and not yet written; how much is said.
"""

import pathlib
import time

from collectors import Collector, ensure, run
from exports import Server, build

AWAY = 1.5  # seconds


def main(folder, how="term", requests=3000):
    folder = pathlib.Path(folder).resolve() / how
    build()
    with Collector(folder) as collector:
        with Server(folder, collector.grpc, "grpc", int(requests)) as server:
            before = wait_for_some(collector, server)
            collector.stop() if how == "term" else collector.kill()
            written = collector.traces.stat().st_size
            time.sleep(AWAY)
            going_on = server.child.poll() is None
            collector.start()
            server.finish()
        counts = collector.counts()
    print(f"restart   {before} spans had been accepted when the collector was ended ({how}); it was away for {AWAY} s")
    ensure(going_on, "the server had ended before the collector was back: nothing was shown")
    ensure(counts["accepted"] > 0, "nothing came after the restart")
    ensure(collector.traces.stat().st_size > written, "nothing was written after the restart")
    server.check(collector.traces, *(["--killed"] if how == "kill" else []))
    spans = server.spans
    print(f"counted   {spans['sent']} sent, {spans['retried']} of them in requests that were sent again, {server.lost} lost; "
          f"all {requests} requests answered in {server.seconds:.1f} s")  # fmt: skip


def wait_for_some(collector, server):
    """Until the collector has some of the run's spans, but not all: how many."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.child.poll() is None:
        accepted = collector.counts()["accepted"]
        if accepted:
            return accepted
        time.sleep(0.02)
    ensure(False, "the run ended, or a time did, before the collector had any span")


run(main)
