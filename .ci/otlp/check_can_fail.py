#!/usr/bin/env -S python3 -B
"""scripts/check-otlp-export finds what is wrong: each of these is done to a good export, one at a time, and has to be noticed.

    check_can_fail.py FOLDER    ledger.jsonl, traces.json, sent.tsv and counters.json of a run of which nothing was lost
"""

import copy
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-otlp-export"


class Export:
    """The four files, to be changed."""

    def __init__(self, folder):
        self.ledger = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
        self.requests = [json.loads(line) for line in (folder / "traces.json").read_text().splitlines()]
        self.sent = (folder / "sent.tsv").read_text().splitlines()
        self.counters = json.loads((folder / "counters.json").read_text())
        self.torn = ""

    def lists(self):
        for request in self.requests:
            for resource in request["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    yield scope["spans"]

    def spans(self, kind):
        return [span for spans in self.lists() for span in spans if attribute(span, "lineage.span") == kind]

    def drop(self, victim):
        for spans in self.lists():
            spans[:] = [span for span in spans if span is not victim]

    def again(self, span):
        other = copy.deepcopy(span)
        next(self.lists()).append(other)
        return other

    def lose(self, count):
        """The exporter says that it lost so many."""
        self.counters["spans"]["sent"] -= count
        self.counters["spans"]["lost"] += count

    def check(self, *more):
        with tempfile.TemporaryDirectory() as folder:
            files = {name: pathlib.Path(folder) / name for name in ("ledger", "traces", "sent", "counters")}
            files["ledger"].write_text("".join(json.dumps(line) + "\n" for line in self.ledger))
            files["traces"].write_text("".join(json.dumps(request) + "\n" for request in self.requests) + self.torn)
            files["sent"].write_text("".join(line + "\n" for line in self.sent))
            files["counters"].write_text(json.dumps(self.counters))
            arguments = [argument for name, path in files.items() for argument in (f"--{name}", path)]
            done = subprocess.run([sys.executable, CHECK, *arguments, *more], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def attribute(owner, name):
    for item in owner.get("attributes", []):
        if item["key"] == name:
            return next(iter(item["value"].values()))
    return None


def put(owner, name, value):
    for item in owner["attributes"]:
        if item["key"] == name:
            kind = next(iter(item["value"]))
            item["value"][kind] = value


def links(span, why):
    return [link for link in span.get("links", []) if attribute(link, "lineage.link") == why]


def later(span, end, ns=1):
    span[end] = str(int(span[end]) + ns)


def shared_batch(export):
    return next(span for span in export.spans("batch") if len(links(span, "member")) > 1)


# ---- what is done, and what the check has to say


def a_member_link_is_gone(export):
    batch = shared_batch(export)
    batch["links"].remove(links(batch, "member")[0])
    return "batch steps that do not link every member"


def a_member_is_linked_twice(export):
    batch = shared_batch(export)
    first, second = links(batch, "member")[:2]
    second["traceId"], second["spanId"] = first["traceId"], first["spanId"]
    return "batch steps that link others than their members"


def a_batch_links_a_part_in_another_batch(export):
    one, other = export.spans("batch")[:2]
    link, wrong = links(one, "member")[0], links(other, "member")[0]
    link["traceId"], link["spanId"] = wrong["traceId"], wrong["spanId"]
    return "batch links to another span than a participation in it"


def a_participation_has_no_link(export):
    export.spans("participation")[0]["links"] = []
    return "participations that do not link one batch step"


def a_participation_links_another_batch(export):
    parts = export.spans("participation")
    other = next(part for part in parts if attribute(part, "lineage.batch.id") != attribute(parts[0], "lineage.batch.id"))
    parts[0]["links"], other["links"] = other["links"], parts[0]["links"]
    return "participations that link another span than their batch step"


def a_participation_hangs_under_another_request(export):
    one = export.spans("participation")[0]
    other = next(span for span in export.spans("request") if span["spanId"] != one["parentSpanId"])
    one["parentSpanId"], one["traceId"] = other["spanId"], other["traceId"]
    return "participations under another than the member"


def an_operation_starts_a_nanosecond_later(export):
    later(export.spans("operation")[0], "startTimeUnixNano")
    return "times that are not the ledger's"


def an_operation_ends_a_nanosecond_later(export):
    later(export.spans("operation")[-1], "endTimeUnixNano")
    return "times that are not the ledger's"


def a_request_starts_a_nanosecond_later(export):
    later(export.spans("request")[0], "startTimeUnixNano")
    return "requests that do not start when they were declared"


def all_times_are_off_and_the_resource_says_so(export):
    for request in export.requests:
        for resource in request["resourceSpans"]:
            offset = "lineage.clock.unix_offset_ns"
            put(resource["resource"], offset, str(int(attribute(resource["resource"], offset)) + 1))
    return "the resource says otherwise"


def a_span_ends_before_it_starts(export):
    later(export.spans("participation")[0], "endTimeUnixNano", -(10**15))
    return "a span that ends before it starts"


def an_operation_is_missing(export):
    export.drop(export.spans("operation")[3])
    return "operations without a span"


def an_operation_is_missing_and_was_never_sent(export):
    victim = export.spans("operation")[3]
    export.drop(victim)
    export.sent.remove(f"{victim['traceId']}\t{victim['spanId']}")
    export.counters["spans"]["offered"] -= 1
    export.counters["spans"]["sent"] -= 1
    return "requests that do not reach all their operations"


def a_participation_is_missing(export):
    export.drop(export.spans("participation")[0])
    return "links to participation spans that did not come"


def a_batch_step_is_missing(export):
    export.drop(export.spans("batch")[0])
    return "batch steps without a span"


def a_request_is_missing(export):
    export.drop(export.spans("request")[0])
    return "requests without a span"


def an_operation_hangs_under_another_batch(export):
    one = next(span for span in export.spans("batch"))
    other = next(span for span in export.spans("batch") if span["traceId"] != one["traceId"])
    moved = next(span for span in export.spans("operation") if span["traceId"] == one["traceId"])
    moved["traceId"], moved["parentSpanId"] = other["traceId"], other["spanId"]
    return "operations under a span of another epoch"


def an_operation_says_another_epoch(export):
    put(export.spans("operation")[0], "lineage.epoch.version", "77")
    return "operations of another epoch"


def an_operation_came_from_nowhere(export):
    other = export.again(export.spans("operation")[0])
    other["spanId"] = "00000000000000aa"
    return "operation spans that the ledger does not have"


def a_batch_step_is_inside_a_request(export):
    export.spans("batch")[0]["parentSpanId"] = export.spans("request")[0]["spanId"]
    return "batch steps that are not the root of a trace of their own"


def two_batch_steps_share_a_trace(export):
    one, other = export.spans("batch")[:2]
    other["traceId"] = one["traceId"]
    return "batch steps that are not the root of a trace of their own"


def the_ledger_has_another_member(export):
    requests = {line["observation"]["event"]["declared"]["epoch"]["id"] for line in observed(export, "declared")}
    merged = [line["observation"]["event"]["linked"] for line in observed(export, "linked")]
    link = next(link for link in merged if link["kind"] == "merge")
    taken = {other["from"]["id"] for other in merged if other["epoch"] == link["epoch"]}
    link["from"]["id"] = min(requests - taken - {other["epoch"]["id"] for other in merged})
    return "batch steps that link others than their members"


def the_ledger_binds_an_operation_to_another(export):
    bound = [line["row"] for line in export.ledger if "row" in line and "bound" in (line["row"]["binding"] or ())]
    other = next(row for row in bound if row["binding"] != bound[0]["binding"])
    bound[0]["binding"] = other["binding"]
    return "operations of another epoch"


def observed(export, kind):
    return [line for line in export.ledger if "observation" in line and kind in (line["observation"]["event"] or ())]


def one_id_has_two_contents(export):
    export.again(export.spans("batch")[0])["name"] = "another"
    export.counters["spans"]["retried"] = 1
    return "one id with two contents"


def a_span_came_twice_and_nothing_was_sent_again(export):
    export.again(export.spans("batch")[0])
    return "more came twice than was sent again"


def a_span_came_that_was_not_sent(export):
    export.sent.pop()
    return "spans that were not sent"


def a_sent_span_did_not_come_and_the_counters_say_nothing(export):
    export.sent.append("0" * 31 + "1\t" + "0" * 15 + "1")
    return "more spans are missing than were counted"


def two_are_missing_and_one_is_counted(export):
    for victim in export.spans("operation")[:2]:
        export.drop(victim)
    export.lose(1)
    return "more spans are missing than were counted"


def one_is_counted_and_another_is_wrong(export):
    export.drop(export.spans("operation")[0])
    export.lose(1)
    later(export.spans("operation")[7], "startTimeUnixNano")
    return "times that are not the ledger's"


# ---- what is right all the same


def nothing_was_done(export):
    return []


def one_is_missing_and_counted(export):
    export.drop(export.spans("operation")[0])
    export.lose(1)
    return []


def one_came_twice_and_was_sent_again(export):
    export.again(export.spans("batch")[0])
    export.counters["spans"]["retried"] = 1
    return []


def a_killed_collector_left_half_a_line(export):
    last = json.dumps(export.requests[-1])
    export.torn = last[: len(last) // 2]
    for victim in export.spans("operation")[:5]:
        export.drop(victim)
    return ["--killed"]


WRONG = [
    a_member_link_is_gone,
    a_member_is_linked_twice,
    a_batch_links_a_part_in_another_batch,
    a_participation_has_no_link,
    a_participation_links_another_batch,
    a_participation_hangs_under_another_request,
    an_operation_starts_a_nanosecond_later,
    an_operation_ends_a_nanosecond_later,
    a_request_starts_a_nanosecond_later,
    all_times_are_off_and_the_resource_says_so,
    a_span_ends_before_it_starts,
    an_operation_is_missing,
    an_operation_is_missing_and_was_never_sent,
    a_participation_is_missing,
    a_batch_step_is_missing,
    a_request_is_missing,
    an_operation_hangs_under_another_batch,
    an_operation_says_another_epoch,
    an_operation_came_from_nowhere,
    a_batch_step_is_inside_a_request,
    two_batch_steps_share_a_trace,
    the_ledger_has_another_member,
    the_ledger_binds_an_operation_to_another,
    one_id_has_two_contents,
    a_span_came_twice_and_nothing_was_sent_again,
    a_span_came_that_was_not_sent,
    a_sent_span_did_not_come_and_the_counters_say_nothing,
    two_are_missing_and_one_is_counted,
    one_is_counted_and_another_is_wrong,
]
RIGHT = [nothing_was_done, one_is_missing_and_counted, one_came_twice_and_was_sent_again, a_killed_collector_left_half_a_line]


def main():
    whole, failed = pickle.dumps(Export(pathlib.Path(sys.argv[1]))), 0
    for change in RIGHT:
        export = pickle.loads(whole)
        status, text = export.check(*change(export))
        if status != 0:
            failed += 1
            print(f"check_can_fail: {change.__name__}: status {status}, and nothing is wrong\n{text}", file=sys.stderr)
    for change in WRONG:
        export = pickle.loads(whole)
        expected = change(export)
        status, text = export.check()
        if status != 1 or f"WRONG  {expected}: " not in text:
            failed += 1
            print(f"check_can_fail: {change.__name__}: status {status}, and not \"{expected}\"\n{text}", file=sys.stderr)
    print(f"{len(WRONG)} defects of an export are found, {len(RIGHT)} exports without one pass" if not failed else f"{failed} are not")
    return 1 if failed else 0


sys.exit(main())
