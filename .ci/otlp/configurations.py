#!/usr/bin/env -S python3 -B
"""The configurations of docs/collector/ do what docs/collector.md says: the official collector takes each of them, and those
that this machine has a backend for are run between the example and that backend.

    configurations.py FOLDER [REQUESTS]
"""

import os
import pathlib
import re
import subprocess
import time

from collectors import ROOT, Collector, Process, built, ensure, free_ports, run
from exports import Server, example

DOCS = ROOT / "docs" / "collector"
DECISION = 5  # seconds that the tail sampler waits here; in its configuration it is 30


class Between(Process):
    """A collector with one of the documented configurations, on ports of its own, before another one."""

    def __init__(self, folder, configuration, backend, *settings):
        super().__init__(folder, free_ports(2))
        self.configuration, self.backend, self.settings = configuration, backend, settings

    def command(self):
        grpc, http = self.ports
        listen = "receivers.otlp.protocols"
        settings = (f"{listen}.grpc.endpoint=127.0.0.1:{grpc}", f"{listen}.http.endpoint=127.0.0.1:{http}", *self.settings)
        quiet = "service.telemetry.metrics.level=none"
        return [built(), "--config", DOCS / self.configuration, *(f"--set={setting}" for setting in (*settings, quiet))]

    def environment(self):
        return {"BACKEND": self.backend.removeprefix("http://")}


def main(folder, requests=500):
    folder = pathlib.Path(folder).resolve()
    documented = sorted(path.name for path in DOCS.glob("*.yaml"))
    ensure(documented, f"no configuration in {DOCS}")
    for name in documented:
        valid(name)
    print(f"valid     {', '.join(documented)}")
    example("inference_server")  # before anything waits for it
    through(folder / "passed-on", "jaeger_or_tempo.yaml", int(requests), "everything")
    # The session is over by then, so there is nothing to wait for but the decision: a sampler that is ended before it has
    # decided loses some of what it holds.
    wait = f"processors.tail_sampling.decision_wait={DECISION}s"
    through(folder / "sampled", "tail_sampling.yaml", int(requests), "late", wait, then=DECISION + 3)


def valid(name):
    backend = "tcp://127.0.0.1:9000" if name == "clickhouse.yaml" else "127.0.0.1:4317"
    command = [built(), "validate", "--config", DOCS / name]
    done = subprocess.run(command, env={**os.environ, "BACKEND": backend}, capture_output=True, text=True)
    ensure(done.returncode == 0, f"{name} is not valid:\n{done.stdout}{done.stderr}")
    endpoints = re.findall(r"endpoint: (127\.\S+)", (DOCS / name).read_text())
    ensure(endpoints == ["127.0.0.1:4317", "127.0.0.1:4318"], f"{name} listens at {endpoints}")


def through(folder, configuration, requests, detail, *settings, then=0):
    """The example through the configuration into a collector in the backend's place, and what came is checked."""
    with Collector(folder) as backend:
        with Between(folder, configuration, backend.grpc, *settings) as between:
            with Server(folder, between.grpc, "grpc", requests, detail=detail) as server:
                server.finish()
            time.sleep(then)
    print(f"---- {configuration}", flush=True)
    ensure((server.lost, server.spans["refused"]) == (0, 0), f"spans were lost or refused: {server.spans}")
    server.check(backend.traces, *(["--kept"] if detail == "late" else []))


run(main)
