"""The example's server with its export, as a user starts it, and what is decided of it from outside."""

import json
import os
import subprocess
import sys
import time

from collectors import ROOT, ensure

PROGRAM = ["cargo", "run", "--release", "--locked", "--quiet", "--example", "inference_server", "--"]
CHECK = ROOT / "scripts" / "check-otlp-export"


def build():
    subprocess.run(["cargo", "build", "--release", "--locked", "--example", "inference_server"], cwd=ROOT, check=True)


class Server:
    """One run of the example that exports to `url`; started at once, in its own process."""

    def __init__(self, folder, url, protocol, requests, compression="none"):
        folder.mkdir(parents=True, exist_ok=True)
        self.ledger, self.sent = folder / "ledger.jsonl", folder / "sent.tsv"
        self.counters, self.summary = folder / "counters.json", folder / "summary.json"
        for file in (self.ledger, self.sent, self.counters, self.summary):
            file.unlink(missing_ok=True)
        self.requests = requests
        self.command = [
            *(*PROGRAM, "--gpu", "sim", "--requests", str(requests), "--arms", "0"),
            *("--out", str(folder), "--json", str(self.summary)),
            *("--otlp", url, "--otlp-sent", str(self.sent)),
        ]
        environment = {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_COMPRESSION": compression}
        self.began, self.log = time.monotonic(), folder / "server.log"
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                self.command, cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()

    def finish(self):
        """Waits for its end: every request was answered rightly, every join is right, whatever became of the export."""
        status = self.child.wait(240)
        self.seconds = time.monotonic() - self.began
        text = self.log.read_text(errors="replace")
        ensure(status == 0, f"the server's exit status is {status}\n$ {' '.join(self.command)}\n{text}")
        ensure("panicked" not in text, f"something panicked\n{text}")
        found = json.loads(self.summary.read_text())
        ensure(found["requests"] == self.requests, f"{found['requests']} of {self.requests} requests were answered")
        ensure((found["lost"], found["wrong"]) == (0, 0), "joins are lost or wrong")
        self.export = found["export"]
        self.counters.write_text(json.dumps(self.export))
        return self

    @property
    def spans(self):
        return self.export["spans"]

    @property
    def lost(self):
        return sum(self.spans["lost"].values())

    def check(self, traces, *more):
        """The independent check of what came."""
        files = ("--ledger", self.ledger, "--traces", traces, "--sent", self.sent, "--counters", self.counters)
        sys.stdout.flush()
        done = subprocess.run([sys.executable, CHECK, *files, *more])
        ensure(done.returncode == 0, "what came is not what the ledger says")
