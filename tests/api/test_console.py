# SPDX-License-Identifier: Apache-2.0
"""husk console: attaching to a running guest and leaving it."""
import signal
import subprocess
import time

import husk
import pytest
from assembly import ECHO
from instances import SECONDS, receive
from terminal import Terminal

pytestmark = husk.needs_accelerator


def pipe_console(*arguments):
    return subprocess.Popen([husk.HUSK, "console", *arguments], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_attach_type_and_detach(guests):
    web = guests("web", ECHO)
    terminal = Terminal("console", "web")
    terminal.expect(b"Ctrl-A x detaches")
    terminal.expect(b"R")  # from before
    terminal.type(b"hello\x03\x01a.")
    terminal.expect(b"hello\x03\x01.")
    terminal.type(b"\x01h")
    terminal.expect(b"x detach")
    terminal.type(b"\x01x")
    assert terminal.end() == 0
    assert web.process.poll() is None
    assert husk.run("stat", "web").returncode == 0


def test_the_end_of_the_guest_ends_it(guests):
    web = guests("web", ECHO)
    terminal = Terminal("console")
    terminal.expect(b"R")
    terminal.type(b"q")
    terminal.expect(b"the console has closed")
    assert terminal.end() == 0
    assert web.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_detaches_and_restores_the_terminal(guests, number):
    web = guests("web", ECHO)
    terminal = Terminal("console")
    terminal.expect(b"R")
    terminal.process.send_signal(number)
    assert terminal.end() == 128 + number
    assert web.process.poll() is None


def test_piped_input_reaches_the_guest_and_its_end_does_not_detach(guests):
    guests("web", ECHO)
    console = pipe_console()
    console.stdin.write(b"abc")
    console.stdin.close()
    assert console.stdout.read(4) == b"Rabc"
    time.sleep(0.3)
    assert console.poll() is None
    assert husk.run("stop").returncode == 0
    assert console.wait(timeout=SECONDS) == 0
    assert (console.stdout.read(), console.stderr.read()) == (b"", b"")
    console.stdout.close()
    console.stderr.close()


def test_no_input_only_looks(guests):
    web = guests("web", ECHO)
    looking = pipe_console("--no-input", "web")
    assert looking.stdout.read(1) == b"R"
    looking.stdin.write(b"q")
    looking.stdin.flush()
    with web.console() as other:
        receive(other, b"R")
        other.sendall(b"seen")
        assert looking.stdout.read(4) == b"seen"
    assert web.process.poll() is None
    looking.terminate()
    assert looking.wait(timeout=SECONDS) == 128 + signal.SIGTERM
    for stream in (looking.stdin, looking.stdout, looking.stderr):
        stream.close()


def test_several_clients_see_the_same(guests):
    web = guests("web", ECHO)
    with web.console() as first, web.console() as second:
        receive(first, b"R")
        receive(second, b"R")
        first.sendall(b"1")
        receive(first, b"1")
        second.sendall(b"2")
        receive(first, b"2")
        receive(second, b"12")


def test_clients_that_leave_make_room_for_others(guests):
    web = guests("web", ECHO)
    for _ in range(40):
        with web.console() as console:
            receive(console, b"R")


def test_a_client_that_does_not_read_stops_nobody(guests):
    web = guests("web", ECHO)
    with web.console() as deaf, web.console() as reader:
        receive(reader, b"R")
        for _ in range(4):
            reader.sendall(b"0123456789" * 10)
            receive(reader, b"0123456789" * 10)
        assert deaf.recv(1) == b"R"


def test_input_the_guest_has_no_room_for_waits(guests):
    web = guests("web", ECHO)
    text = bytes(range(ord("A"), ord("Z"))) * 40
    assert husk.run("pause").returncode == 0
    with web.console() as console:
        receive(console, b"R")
        console.sendall(text)
        assert husk.run("resume").returncode == 0
        receive(console, text)


def test_a_reader_of_its_output_that_leaves_ends_it_quietly(guests):
    web = guests("web", ECHO)
    console = pipe_console()
    assert console.stdout.read(1) == b"R"
    console.stdout.close()
    console.stdin.write(b"x")
    console.stdin.close()
    assert console.wait(timeout=SECONDS) == 128 + signal.SIGPIPE
    assert console.stderr.read() == b""
    console.stderr.close()
    assert web.process.poll() is None
