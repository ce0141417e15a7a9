"""The two collectors that exports are sent to, each on free ports of this machine's loopback, ended with the `with` block."""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "scripts" / "collector" / "collector.yaml"


class Failed(Exception):
    """What a run found wrong."""


def ensure(condition, what):
    if not condition:
        raise Failed(what)


def end_with_the_blocks():
    """A signal ends the `with` blocks as an exception does, so that nothing is left running."""

    def end(number, _):
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


def free_ports(count):
    """Ports that nobody listens on. Taken together, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Process:
    """A collector's process: started, waited for until it listens, ended."""

    def __init__(self, folder, ports):
        self.folder, self.ports, self.child = folder, ports, None
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{type(self).__name__.lower()}.log"
        self.log.unlink(missing_ok=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.child:
            self.stop()

    @property
    def grpc(self):
        return f"http://127.0.0.1:{self.ports[0]}"

    @property
    def http(self):
        return f"http://127.0.0.1:{self.ports[1]}"

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.command(), env={**os.environ, **self.environment()}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + 60
        for port in self.ports:
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                if self.child.poll() is not None or time.monotonic() > deadline:
                    self.__exit__()
                    raise Failed(f"{type(self).__name__} did not start:\n{self.log.read_text(errors='replace')[-2000:]}")
                time.sleep(0.02)

    def stop(self):
        """As an operator does: it writes what it has and ends."""
        self.child.terminate()
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{type(self).__name__} did not end within 30 s of SIGTERM") from None
        self.child = None

    def kill(self):
        self.child.kill()
        self.child.wait()
        self.child = None

    def most_memory_mb(self):
        status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1000

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Collector(Process):
    """The official one. What it received is in its folder: traces.json or traces.proto, metrics.json, logs.json."""

    def __init__(self, folder, memory_mib=1024, traces_as="json"):
        super().__init__(folder, free_ports(3))
        self.memory_mib, self.traces_as = memory_mib, traces_as
        self.traces = folder / f"traces.{traces_as}"
        for file in (self.traces, folder / "metrics.json", folder / "logs.json"):
            file.unlink(missing_ok=True)

    def command(self):
        return [built(), "--config", CONFIGURATION]

    def environment(self):
        grpc, http, metrics = self.ports
        return {
            "GRPC": f"127.0.0.1:{grpc}",
            "HTTP": f"127.0.0.1:{http}",
            "METRICS": str(metrics),
            "FOLDER": str(self.folder),
            "MEMORY_MIB": str(self.memory_mib),
            "TRACES_AS": self.traces_as,
        }

    def counts(self):
        """Spans that it says it accepted, refused and wrote since it was started."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[2]}/metrics", timeout=10) as answer:
            text = answer.read().decode()

        def total(name, label=""):
            found = re.findall(rf"^{name}(?:_total)?{{([^}}]*)}} (\S+)$", text, re.M)
            return int(sum(float(value) for labels, value in found if label in labels))

        return {
            "accepted": total("otelcol_receiver_accepted_spans"),
            "refused": total("otelcol_receiver_refused_spans"),
            "failed": total("otelcol_receiver_failed_spans"),
            "written": total("otelcol_exporter_sent_spans", 'exporter="file/traces"'),
        }


class Rotel(Process):
    """One that shares no code with it, and passes what it received on to it."""

    def __init__(self, folder, onward):
        super().__init__(folder, free_ports(2))
        self.onward = onward

    def command(self):
        grpc, http = self.ports
        return [
            *(os.environ["LINEAGE_ROTEL"], "start"),
            *("--pid-file", self.folder / "rotel.pid", "--log-file", self.folder / "rotel-agent.log"),
            *("--otlp-grpc-endpoint", f"127.0.0.1:{grpc}", "--otlp-http-endpoint", f"127.0.0.1:{http}"),
            *("--debug-log", "traces", "--debug-log-verbosity", "detailed"),
            *("--exporter", "otlp", "--otlp-exporter-endpoint", self.onward, "--otlp-exporter-protocol", "grpc"),
        ]

    def environment(self):
        return {"LD_LIBRARY_PATH": os.environ.get("LINEAGE_ROTEL_LIBRARIES", ""), "NO_COLOR": "1"}

    def shown(self):
        """What its log shows, counted: spans, their links and their events."""
        text = self.log.read_text(errors="replace")
        return {
            "spans": len(re.findall(r"^Span #\d+", text, re.M)),
            "links": len(re.findall(r"^\s*SpanLink #\d+", text, re.M)),
            "events": len(re.findall(r"^\s*SpanEvent #\d+", text, re.M)),
        }


def built():
    """The official collector, built if it is not there."""
    if not built.path:
        done = subprocess.run([ROOT / "scripts" / "build-collector"], stdout=subprocess.PIPE, text=True)
        ensure(done.returncode == 0, "the collector cannot be built")
        built.path = done.stdout.strip()
    return built.path


built.path = None


def run(main):
    """Runs `main` with the command line's arguments; the exit status is 1 if something is wrong."""
    end_with_the_blocks()
    try:
        main(*sys.argv[1:])
    except Failed as failure:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {failure}")
