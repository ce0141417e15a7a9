#!/usr/bin/env python3
"""What is in the recordings, counted with code of its own, for tests to compare with.

    truth.py FOLDER > expected.tsv     FOLDER holds kineto/*.json.gz and nsys/*.sqlite

It shares nothing with the importers: whole files in memory, Python's json and sqlite3. Columns:

file                        below FOLDER
api_calls                   API records as they are in the file
kernels memcpys memsets     records of GPU work
activity_without_launch     GPU work whose correlation id no API record of the same process has
  before_recording            of these: the id is below the smallest API id of the process
  without_correlation         of these: the id is 0, which is no id (the driver's own copies for managed memory)
  operations_lost             of these: the rest
launch_without_activity     launch, copy and set calls with whose id there is no GPU work in the same process
  failed                      of these: the call returned an error
  captured                    of these: made while a stream capture was open in the process, so they became graph nodes
  maybe_without_work          of these: copies and sets, whose size and place no record gives: of no bytes, or within the
                              host, they are no GPU work
  not_recorded                of these: the process has no record of GPU work at all
  after_recording             of these: the id is above the largest one that GPU work of the process has
  calls_lost                  of these: the rest
joined_kernels              kernels whose call is there
calls_with_many             calls with more than one record of GPU work
most_of_one_call            the most records of GPU work of one call
"""

import gzip
import json
import pathlib
import re
import sqlite3
import sys

COLUMNS = [
    "file", "api_calls", "kernels", "memcpys", "memsets",
    "activity_without_launch", "before_recording", "without_correlation", "operations_lost",
    "launch_without_activity", "failed", "captured", "maybe_without_work", "not_recorded", "after_recording", "calls_lost",
    "joined_kernels", "calls_with_many", "most_of_one_call",
]  # fmt: skip

API = {"Runtime", "cuda_runtime", "cuda_driver", "hip_runtime"}
WORK = {"Kernel": "kernel", "kernel": "kernel", "Memcpy": "copy", "gpu_memcpy": "copy", "Memset": "set", "gpu_memset": "set"}
ASKS = re.compile(r"^(cu|cuda|hip)(Ext)?(Module|Graph|Mem)?(Launch|cpy|set)")


def kineto(path):
    """(calls, work): each call (process, id, name, failed, start), each piece of work (process, id, kind)."""
    with gzip.open(path, "rt") as text:
        trace = json.load(text)
    events = [event for event in (trace if isinstance(trace, list) else trace["traceEvents"]) if event.get("ph") == "X"]
    calls = [(0, int(e["args"]["correlation"]), e["name"], False, float(e["ts"])) for e in events if e.get("cat") in API]
    work = [(0, int(e["args"]["correlation"]), WORK[e["cat"]]) for e in events if e.get("cat") in WORK]
    # One process to a file; two would need more care than this.
    assert len({event["pid"] for event in events if event.get("cat") in API}) == 1
    return calls, work


def nsys(path):
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
    names = dict(database.execute("select id, value from StringIds"))
    calls = [
        # The process is in the upper bits of the thread's id.
        (thread >> 24, correlation, names[name].split("_v")[0], result != 0, start)
        for thread, correlation, name, result, start in database.execute(
            "select globalTid, correlationId, nameId, returnValue, start from CUPTI_ACTIVITY_KIND_RUNTIME"
        )
    ]
    work = []
    for table, kind in [("KERNEL", "kernel"), ("MEMCPY", "copy"), ("MEMSET", "set")]:
        if f"CUPTI_ACTIVITY_KIND_{table}" in tables:
            rows = database.execute(f"select globalPid, correlationId from CUPTI_ACTIVITY_KIND_{table}")
            work += [(process >> 24, correlation, kind) for process, correlation in rows]
    return calls, work


def captures(calls):
    """Per process, the spans of time in which a stream capture was open."""
    spans, opened = {}, {}
    for process, _, name, _, start in sorted(calls, key=lambda call: call[4]):
        if "StreamBeginCapture" in name:
            opened[process] = start
        elif "StreamEndCapture" in name and process in opened:
            spans.setdefault(process, []).append((opened.pop(process), start))
    return spans


def count(calls, work):
    def ids(records, process):
        return [record[1] for record in records if record[0] == process and record[1] != 0]

    processes = {record[0] for record in calls + work}
    smallest_call = {process: min(ids(calls, process), default=0) for process in processes}
    largest_work = {process: max(ids(work, process), default=None) for process in processes}
    called = {(process, correlation) for process, correlation, *_ in calls if correlation != 0}
    found = dict.fromkeys(COLUMNS[1:], 0)

    done = {}
    for process, correlation, kind in work:
        found[{"kernel": "kernels", "copy": "memcpys", "set": "memsets"}[kind]] += 1
        if (process, correlation) in called:
            done[process, correlation] = done.get((process, correlation), 0) + 1
            found["joined_kernels"] += kind == "kernel"
            continue
        found["activity_without_launch"] += 1
        if correlation == 0:
            found["without_correlation"] += 1
        elif correlation < smallest_call[process]:
            found["before_recording"] += 1
        else:
            found["operations_lost"] += 1

    found["api_calls"] = len(calls)
    spans = captures(calls)
    # Two records may have one id (the runtime's and the driver's name of one call): one call.
    for process, correlation in {call[:2] for call in calls if ASKS.match(call[2])} - done.keys():
        of_it = [call for call in calls if call[:2] == (process, correlation)]
        name, failed, start = of_it[0][2:]
        found["launch_without_activity"] += 1
        if failed:
            found["failed"] += 1
        elif any(opened < start < ended for opened, ended in spans.get(process, [])):
            found["captured"] += 1
        elif "Memcpy" in name or "Memset" in name:
            found["maybe_without_work"] += 1
        elif largest_work[process] is None:
            found["not_recorded"] += 1
        elif correlation > largest_work[process]:
            found["after_recording"] += 1
        else:
            found["calls_lost"] += 1

    found["calls_with_many"] = sum(number > 1 for number in done.values())
    found["most_of_one_call"] = max(done.values(), default=0)
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    print(*COLUMNS, sep="\t")
    for read, pattern in [(kineto, "kineto/*.json.gz"), (nsys, "nsys/*.sqlite")]:
        for path in sorted(folder.glob(pattern)):
            found = count(*read(path))
            print(path.relative_to(folder).as_posix(), *found.values(), sep="\t")


if __name__ == "__main__":
    main()
