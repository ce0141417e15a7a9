#!/usr/bin/env python3
"""Asks the real CUPTI, in processes of their own, what it answers where there is no device, and compares with real_codes.json.

The paths come from `scripts/fetch-parts`. `--write` puts the present answers on record. This is plain ctypes and knows nothing
of lineage: it shows that the facts hold which the tests of lineage-cupti build on.
"""

import ctypes
import itertools
import json
import os
import pathlib
import subprocess
import sys

RECORD = pathlib.Path(__file__).with_name("real_codes.json")
CONCURRENT_KERNEL, CUSTOM0 = 10, 3


def ask(cupti_path, driver_path):
    driver = ctypes.CDLL(driver_path, mode=ctypes.RTLD_GLOBAL) if driver_path else None
    cupti = ctypes.CDLL(cupti_path)
    answers = {}

    def call(name, *arguments):
        answers[name] = getattr(cupti, name)(*arguments)

    version = ctypes.c_uint32(0)
    call("cuptiGetVersion", ctypes.byref(version))
    answers["version"] = version.value
    request = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(lambda *_: None)
    complete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(lambda *_: None)
    called = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
    call("cuptiActivityRegisterCallbacks", request, complete)
    call("cuptiActivityEnable", CONCURRENT_KERNEL)
    call("cuptiActivityPushExternalCorrelationId", CUSTOM0, ctypes.c_uint64((1 << 24) | 1))
    last = ctypes.c_uint64(0)
    call("cuptiActivityPopExternalCorrelationId", CUSTOM0, ctypes.byref(last))
    subscriber = ctypes.c_void_p()
    call("cuptiSubscribe", ctypes.byref(subscriber), called, None)
    if driver:
        answers["cuInit"] = driver.cuInit(0)
        answers["cuptiActivityEnable after cuInit"] = cupti.cuptiActivityEnable(CONCURRENT_KERNEL)
    return answers


def main():
    if sys.argv[1] == "--ask":
        print(json.dumps(ask(sys.argv[2], sys.argv[3] or None)))
        return
    cuptis = {"CUPTI 12.9": os.environ["LINEAGE_CUPTI_12"], "CUPTI 13.5": os.environ["LINEAGE_CUPTI_13"]}
    drivers = {"no libcuda": "", "libcuda 535": os.environ["LINEAGE_LIBCUDA_535"], "libcuda 550": os.environ["LINEAGE_LIBCUDA_550"]}
    present = {}
    for (cupti, cupti_path), (driver, driver_path) in itertools.product(cuptis.items(), drivers.items()):
        text = subprocess.check_output([sys.executable, __file__, "--ask", cupti_path, driver_path], timeout=60)
        present[f"{cupti}, {driver}"] = json.loads(text)
    if sys.argv[1] == "--write":
        RECORD.write_text(json.dumps(present, indent=2) + "\n")
        return
    record = json.loads(RECORD.read_text())
    differ = [f"{name}: on record {record.get(name)}, now {present.get(name)}" for name in record.keys() | present.keys() if record.get(name) != present.get(name)]
    if differ:
        sys.exit("the real CUPTI answers otherwise than on record:\n" + "\n".join(sorted(differ)))
    print(f"the real CUPTI answers as on record in {len(record)} settings without a device")


main()
