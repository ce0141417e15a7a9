"""The metrics that a collector received, beside the ledger of the same session: sums over its rows, made here anew."""

import collections
import json

from collectors import ensure


def points(path):
    """The last value of each series: (metric, attributes) -> data point."""
    found = {}
    for line in path.read_text().splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                for metric in scope["metrics"]:
                    data = metric.get("sum") or metric.get("gauge") or metric.get("histogram") or {}
                    for point in data.get("dataPoints", []):
                        attributes = {item["key"]: next(iter(item["value"].values())) for item in point.get("attributes", [])}
                        found[metric["name"], tuple(sorted(attributes.items()))] = point
    return found


def total(found, name, of, **wanted):
    """The sum of a field over the series of a metric that have these values; in names of attributes `_` stands for `.`."""
    values = []
    for (metric, attributes), point in found.items():
        values_of = {key.replace(".", "_"): value for key, value in attributes}
        if metric == name and all(values_of.get(key) == value for key, value in wanted.items()):
            values.append(float(point.get(of, 0)))
    return sum(values)


def check(metrics, ledger):
    """Raises where a metric is not what the ledger says."""
    rows, epochs = collections.Counter(), 0
    delays, delay_ns, device_ns = 0, 0, 0
    for line in ledger.read_text().splitlines():
        ((kind, value),) = json.loads(line).items()
        if kind == "observation":
            epochs += "declared" in (value["event"] or ())
        elif kind == "row":
            binding, operation = value["binding"], value["operation"]
            outcome = binding if isinstance(binding, str) else next(iter(binding))
            rows[outcome] += 1
            if outcome != "bound" or not operation or operation["start"] is None or operation["end"] is None:
                continue
            device_ns += operation["end"] - operation["start"]
            entered = value["stages"]["api_enter"].get("observed")
            if entered:
                delays += 1
                delay_ns += operation["start"] - entered["at"]
    found = points(metrics)
    for outcome in ("bound", "unattributed", "lost", "disputed"):
        said = total(found, "lineage.joins", "asInt", lineage_join_outcome=outcome)
        ensure(said == rows[outcome], f"lineage.joins says {said:.0f} {outcome}, the ledger has {rows[outcome]}")
    said = total(found, "lineage.epochs", "asInt")
    ensure(said == epochs, f"lineage.epochs says {said:.0f}, the ledger has {epochs}")
    said = total(found, "lineage.launch.delay", "count")
    ensure(said == delays, f"lineage.launch.delay has {said:.0f} values, the ledger {delays}")
    for name, of, right_ns in (("lineage.launch.delay", "sum", delay_ns), ("lineage.device.time", "asDouble", device_ns)):
        said = total(found, name, of)
        ensure(abs(said - right_ns / 1e9) <= 1e-6 * right_ns / 1e9, f"{name} comes to {said} s, in the ledger to {right_ns / 1e9} s")
    print(f"metrics   {len(found)} series; {rows['bound']} bound, {epochs} epochs, launch delays of {delay_ns / 1e6:.3f} ms and "
          f"{device_ns / 1e6:.3f} ms on the device are the ledger's")  # fmt: skip
