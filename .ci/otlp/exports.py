"""The example's server with its export, as a user starts it, and what is decided of it from outside."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import time

from collectors import ROOT, ensure

CHECK = ROOT / "scripts" / "check-otlp-export"


@functools.cache
def example(name, package="launch-lineage"):
    """The program of an example: built, but where LINEAGE_BUILT is set, which says that it is."""
    if not os.environ.get("LINEAGE_BUILT"):
        command = ["cargo", "build", "--release", "--locked", "--package", package, "--example", name]
        subprocess.run(command, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    return target / "release" / "examples" / name


class Server:
    """One run of the example that exports to `url`; started at once, in its own process."""

    def __init__(self, folder, url, protocol, requests, compression="none", detail="everything"):
        folder.mkdir(parents=True, exist_ok=True)
        self.ledger, self.sent = folder / "ledger.jsonl", folder / "sent.tsv"
        self.counters, self.summary = folder / "counters.json", folder / "summary.json"
        for file in (self.ledger, self.sent, self.counters, self.summary):
            file.unlink(missing_ok=True)
        self.requests = requests
        self.command = [
            *(example("inference_server"), "--gpu", "sim", "--requests", str(requests), "--arms", "0"),
            *("--out", str(folder), "--json", str(self.summary)),
            *("--otlp", url, "--otlp-spans", str(self.sent), "--otlp-protocol", protocol, "--otlp-detail", detail),
        ]
        environment = {"OTEL_EXPORTER_OTLP_COMPRESSION": compression}
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
        ensure(status == 0, f"the server's exit status is {status}\n$ {' '.join(map(str, self.command))}\n{text}")
        ensure("panicked" not in text, f"something panicked\n{text}")
        found = json.loads(self.summary.read_text())
        ensure(found["requests"] == self.requests, f"{found['requests']} of {self.requests} requests were answered")
        ensure((found["lost"], found["wrong"]) == (0, 0), "joins are lost or wrong")
        self.export = found["otlp"]
        self.counters.write_text(json.dumps(self.export))
        return self

    @property
    def spans(self):
        return self.export["spans"]

    @property
    def lost(self):
        return self.spans["lost"]

    def check(self, traces, *more):
        """The independent check of what came."""
        files = ("--ledger", self.ledger, "--traces", traces, "--sent", self.sent, "--counters", self.counters)
        sys.stdout.flush()
        done = subprocess.run([sys.executable, CHECK, *files, *more])
        ensure(done.returncode == 0, "what came is not what the ledger says")
