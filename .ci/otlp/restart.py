#!/usr/bin/env -S python3 -B
"""The collector goes away in the middle of a run: the server goes on, and nothing is lost without a count.

    restart.py FOLDER [term|kill|gone] [REQUESTS]

term: by SIGTERM, as an operator does it, and it comes back. What came and what was counted as lost are together what was sent.
kill: by SIGKILL, and it comes back. It may lose what it had acknowledged and not yet written; how much is said.
gone: by SIGTERM, for good. The server ends in time, and all that did not come is counted.
"""

import pathlib
import time

from collectors import Collector, ensure, run
from exports import Server, example

AWAY = 1.5  # seconds
AT_MOST = 60  # seconds for a run, some of which the session waits for a collector that is gone


def main(folder, how="term", requests=3000):
    folder = pathlib.Path(folder).resolve() / how
    example("inference_server")  # before anything waits for it
    with Collector(folder) as collector:
        with Server(folder, collector.grpc, "grpc", int(requests)) as server:
            before = wait_for_some(collector, server)
            collector.kill() if how == "kill" else collector.stop()
            written = collector.traces.stat().st_size
            time.sleep(AWAY)
            ensure(server.child.poll() is None, "the server ended before the collector was back: nothing is shown")
            if how != "gone":
                collector.start()
            server.finish()
        if how != "gone":
            ensure(collector.counts()["accepted"] > 0, "nothing came after the restart")
    away = "for good" if how == "gone" else f"for {AWAY} s"
    print(f"restart   {before} spans had been accepted when the collector was ended ({how}); it was away {away}")
    ensure((collector.traces.stat().st_size > written) == (how != "gone"), "what was written afterwards is not as it must be")
    server.check(collector.traces, *(["--killed"] if how == "kill" else []))
    spans = server.spans
    print(f"counted   {spans['sent']} sent, {spans['retried']} of them in requests that were sent again, {server.lost} lost; "
          f"all {requests} requests answered, {server.seconds:.1f} s in all")  # fmt: skip
    ensure((server.lost > 0) == (how == "gone"), "spans were lost, although the collector came back, or none although it did not")
    ensure(server.seconds < AT_MOST, f"the run took {server.seconds:.1f} s")


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
