# SPDX-License-Identifier: Apache-2.0
"""The API as any HTTP client sees it, and clients that mean no good."""
import os
import socket
import stat

import husk
import pytest
from assembly import ECHO, LISTENS
from instances import Connection

pytestmark = husk.needs_accelerator


def test_requests_and_their_answers(guests):
    web = guests("web", ECHO)
    status, document = web.request("GET", "/")
    assert (status, document["schema"], document["state"]) == (200, 1, "running")
    assert "counters" not in document
    assert web.request("PATCH", "/vm", '{"state":"Paused"}') == (204, None)
    assert web.request("GET", "/")[1]["state"] == "paused"
    assert web.request("PUT", "/actions", '{"action_type":"SendCtrlAltDel"}') == (
        409, {"fault_message": "the VM is paused: resume it first"})
    assert web.request("PATCH", "/vm", '{"state":"Resumed"}') == (204, None)
    assert web.request("PUT", "/actions", '{"action_type":"SendCtrlAltDel"}') == (
        409, {"fault_message": "the guest does not listen to the power button"})
    assert web.request("PUT", "/actions", '{"action_type":"Reboot"}') == (
        400, {"fault_message": 'unknown action_type "Reboot": it must be SendCtrlAltDel, '
              'Stop, Dump or UpdateDisks'})
    assert web.request("GET", "/metrics") == (
        404, {"fault_message": "no such path: there are /, /stat, /vm, /console, /actions and /balloon"})
    assert web.request("DELETE", "/vm") == (405, {"fault_message": "/vm has PATCH only"})


def test_dump_logs_the_registers(guests):
    web = guests("web", ECHO)
    assert web.request("PUT", "/actions", '{"action_type":"Dump"}') == (204, None)
    assert web.process.stderr.readline().startswith(b"husk: vCPU 0: rip ")


@pytest.mark.parametrize("program, action, code", [(ECHO, "Stop", 5),
                                                   (LISTENS, "SendCtrlAltDel", 0)],
                         ids=["stop", "power button"])
def test_the_last_request_is_answered_before_the_end(guests, program, action, code):
    web = guests("web", program)
    assert web.request("PUT", "/actions", f'{{"action_type":"{action}"}}') == (204, None)
    assert web.wait() == code


def test_sockets_and_directories_are_for_their_owner_only(guests):
    web = guests("web", ECHO)
    modes = {name: stat.S_IMODE(os.stat(web.directory / name).st_mode)
             for name in os.listdir(web.directory)}
    assert modes == {"api.sock": 0o600, "console.sock": 0o600, "info.json": 0o600,
                     "lock": 0o600}
    assert stat.S_IMODE(os.stat(web.directory).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(web.directory.parent).st_mode) == 0o700


def test_slow_and_nonsensical_clients_harm_nobody(guests):
    web = guests("web", ECHO)
    slow = []
    for text in [b"", b"GET", b"PUT /actions HTTP/1.1\r\nContent-Length: 9\r\n\r\n{",
                 b"\x16\x03\x01\r\n\r\n", b"\0" * 5000]:
        connected = socket.socket(socket.AF_UNIX)
        connected.connect(str(web.directory / "api.sock"))
        connected.sendall(text)
        slow.append(connected)
    assert web.request("GET", "/")[0] == 200
    for connected in slow:
        connected.settimeout(15)
        while connected.recv(4096):  # each is closed in the end
            pass
        connected.close()
    assert web.request("GET", "/")[0] == 200


def test_bodies_beyond_64_kib_are_refused(guests):
    web = guests("web", ECHO)
    connection = Connection(web.directory / "api.sock")
    connection.putrequest("PUT", "/actions")
    connection.putheader("Content-Length", "65537")
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    assert web.request("GET", "/")[0] == 200
