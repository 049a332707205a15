# SPDX-License-Identifier: Apache-2.0
"""A client of Channel Access by EPICS's own library, driven line by line: a JSON question in, a JSON answer out.

`python epics_client.py PORT`
"""

import ctypes
import json
import os
import sys
import threading

os.environ.update(EPICS_CA_ADDR_LIST="127.0.0.1", EPICS_CA_AUTO_ADDR_LIST="NO", EPICS_CA_SERVER_PORT=sys.argv[1])

import epics
from epics import ca, dbr

WAIT_S = 60  # for an answer; what has none fails its test


class Put(ctypes.Structure):
    """event_handler_args of cadef.h."""

    _fields_ = (
        ("usr", ctypes.c_void_p),
        ("chid", dbr.chid_t),
        ("type", ctypes.c_long),
        ("count", ctypes.c_long),
        ("raw_dbr", ctypes.c_void_p),
        ("status", ctypes.c_int),
    )


HANDLER = ctypes.CFUNCTYPE(None, Put)
TYPES = {"string": (dbr.STRING, None), "double": (dbr.DOUBLE, ctypes.c_double), "long": (dbr.INT, ctypes.c_int32)}
seen: list[list] = []
pvs: dict[str, epics.PV] = {}


def channel(name: str):
    chid = ca.create_channel(name, connect=False, auto_cb=False)
    return chid if ca.connect_channel(chid, timeout=WAIT_S) else None


def read(name: str) -> dict:
    pv = pvs.setdefault(name, epics.PV(name, form="ctrl", auto_monitor=False))
    if not pv.wait_for_connection(WAIT_S):
        return {"error": "not connected"}
    data = pv.get_with_metadata(form="ctrl", use_monitor=False, timeout=WAIT_S)
    alarm = pv.get_with_metadata(form="time", use_monitor=False, timeout=WAIT_S)
    keys = ("value", "units", "upper_ctrl_limit", "lower_ctrl_limit", "enum_strs")
    answer = {key: data.get(key) for key in keys if data.get(key) is not None}
    return {**answer, "severity": alarm["severity"], "status": alarm["status"], "access": pv.access, "type": pv.type}


def write(name: str, kind: str, value: object) -> dict:
    """A put with callback, as `caput -c`: the status of Channel Access, by its message."""
    chid = channel(name)
    if chid is None:
        return {"error": "not connected"}
    number, ctype = TYPES[kind]
    data = ctypes.create_string_buffer(str(value).encode(), 40) if ctype is None else ctype(value)
    answered, status = threading.Event(), []

    def on_answer(arguments: Put) -> None:
        status.append(arguments.status)
        answered.set()

    handler = HANDLER(on_answer)
    code = ca.libca.ca_array_put_callback(number, 1, chid, ctypes.byref(data), handler, None)
    if code != dbr.ECA_NORMAL:
        return {"status": ca.message(code)}
    ca.flush_io()
    while not answered.is_set():
        ca.pend_event(0.01)
    return {"status": ca.message(status[0])}


def monitor(name: str) -> dict:
    def on_change(value=None, severity=None, status=None, **_) -> None:
        seen.append([name, value, severity, status])

    pvs[f"{name} monitored"] = epics.PV(
        name, form="time", callback=on_change, auto_monitor=dbr.DBE_VALUE | dbr.DBE_ALARM
    )
    return {}


QUESTIONS = {"read": read, "write": write, "monitor": monitor, "seen": lambda: {"seen": seen}}

for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps(QUESTIONS[question.pop("ask")](**question)), flush=True)
os._exit(0)  # without the threads of the library
