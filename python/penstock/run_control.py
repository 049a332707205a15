# SPDX-License-Identifier: Apache-2.0
"""Run control of `penstock recv`: an experiment configures, starts and stops runs over HTTP or a local socket.

    python -m penstock.run_control --runs RUNS --socket FILE --http 127.0.0.1:9300 --token-file FILE -- RECV OPTIONS

    idle --configure--> configured --start--> running --stop, abort--> stopping
    configured --reset--> idle
    running, stopping --the run is over and verified--> idle
    running, stopping --the run is over with a fault--> error
    error --reset--> idle, error --configure--> configured

Promise: each run is one `penstock recv` of its own, so that no state carries over from an earlier run; a state is
reported only after it has been reached. Over HTTP every request needs the token. Reference:
docs/run-control.md.
"""

import argparse
import contextlib
import hmac
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ALLOWED: dict[str, tuple[str, ...]] = {
    "idle": ("configure",),
    "configured": ("configure", "start", "reset"),
    "running": ("stop", "abort"),
    "stopping": ("abort",),
    "error": ("configure", "reset"),
}
COMMANDS = ("configure", "start", "stop", "abort", "reset")
OWNED = ("--out", "--events", "--seconds", "--json")  # options of `recv` that are set for each run
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
LONGEST_BODY = 65536
LONGEST_DROPPED = 16 * LONGEST_BODY
SHORTEST_TOKEN = 16
LONGEST_LENGTH = 18  # digits
PATIENCE_S = 10  # with a client that says nothing
CLIENTS = 32  # at a time: of more, the oldest gives way


class Refused(Exception):
    """A request that is not carried out, with its status of HTTP."""

    def __init__(self, status: int, message: str, **more: object) -> None:
        super().__init__(status, message)  # both, so that the error can be pickled
        self.status, self.answer = status, {"error": message, **more}

    def __str__(self) -> str:
        return self.args[1]


def configuration(body: object) -> dict[str, Any]:
    """{"run": NAME, "events": N, "seconds": S}, the last two if wanted."""
    if not isinstance(body, dict):
        raise Refused(400, 'configure takes an object, {"run": "20260101-1", "events": 1000}')
    if unknown := sorted(set(body) - {"run", "events", "seconds"}):
        raise Refused(400, f"unknown keys {', '.join(unknown)}: allowed are run, events and seconds")
    name = body.get("run")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Refused(400, f"run = {json.dumps(name)}: give the run a name of 1 to 100 letters, digits, _ . and -")
    for key in ("events", "seconds"):
        value = body.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise Refused(400, f"{key} = {json.dumps(value)}: allowed is a whole number from 1")
    return body


def parsed(body: bytes) -> object:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is no JSON: {error}") from None


class RunControl:
    """The states, and the receiver of the run. Every method may be called from any thread."""

    def __init__(self, recv: list[str], runs: Path) -> None:
        self._recv, self._runs = recv, runs
        self._lock = threading.Lock()
        self._over = threading.Condition(self._lock)
        self._state = "idle"
        self._configuration: dict[str, Any] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._since = datetime.now(UTC)
        self._last: dict[str, Any] | None = None

    def state(self) -> dict[str, Any]:
        with self._lock:
            return self._state_json()

    def _state_json(self) -> dict[str, Any]:
        return {
            "state": self._state,
            "since": self._since.isoformat(timespec="milliseconds"),
            "allowed": list(ALLOWED[self._state]),
            "configuration": self._configuration,
            "pid": None if self._process is None else self._process.pid,
            "last_run": self._last,
        }

    def _go(self, state: str) -> None:
        self._state, self._since = state, datetime.now(UTC)

    def carry_out(self, command: str, body: object = None) -> dict[str, Any]:
        """Executes a request; Refused: it is not allowed now, or invalid."""
        with self._lock:
            if command not in ALLOWED[self._state]:
                allowed = list(ALLOWED[self._state])
                message = f"{command}: not while {self._state}; allowed now: {', '.join(allowed)}"
                raise Refused(409, message, state=self._state, allowed=allowed)
            match command:
                case "configure":
                    self._configure(configuration(body))
                case "start":
                    self._start()
                case "stop":
                    self._signal()
                    self._go("stopping")
                case "abort":
                    # A second signal has the receiver give up what it waits for. Two of a kind could become one.
                    if self._state == "running":
                        self._signal()
                    self._signal(signal.SIGTERM)
                    self._go("stopping")
                case "reset":
                    self._configuration = None
                    self._go("idle")
            return self._state_json()

    def _configure(self, requested: dict[str, Any]) -> None:
        folder = self._runs / requested["run"]
        if folder.exists():
            raise Refused(
                400,
                f"run = {json.dumps(requested['run'])}: {folder} is there already; each run has a name of its own",
            )
        self._configuration = requested
        self._go("configured")

    def _start(self) -> None:
        requested = self._configuration or {}
        folder = self._runs / requested["run"]
        options = ["--json", "--out", str(folder / "events")]
        options += [
            word for key in ("events", "seconds") if key in requested for word in (f"--{key}", str(requested[key]))
        ]
        try:
            folder.mkdir(parents=True)
            with (folder / "log.txt").open("wb") as log, (folder / "report.json").open("wb") as report:
                self._process = subprocess.Popen(
                    [*self._recv, *options], stdin=subprocess.DEVNULL, stdout=report, stderr=log, start_new_session=True
                )
        except OSError as error:
            self._ended(folder, None, f"the receiver cannot be started: {error}")
            raise Refused(500, f"the receiver cannot be started: {error}", state=self._state) from None
        self._go("running")
        threading.Thread(target=self._watch, args=(self._process, folder), daemon=True).start()

    def _watch(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        status = process.wait()
        with self._lock:
            self._ended(folder, status, None)

    def _ended(self, folder: Path, status: int | None, why: str | None) -> None:
        faults = [why] if why else []
        if status:
            try:
                faults = json.loads((folder / "report.json").read_text())["faults"]
            except (OSError, ValueError, KeyError):
                reported = (folder / "log.txt").read_text(errors="replace").strip().splitlines()
                faults = reported[-3:] or [f"the receiver ended with {status}"]
        self._last = {"run": folder.name, "folder": str(folder), "status": status, "faults": faults}
        self._process, self._configuration = None, None
        self._go("idle" if status == 0 else "error")
        self._over.notify_all()

    def _signal(self, number: int = signal.SIGINT) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def close(self) -> None:
        """Stops a run, and waits until it is over: nothing that was acknowledged is given up."""
        with self._lock:
            if self._state == "running":
                self._signal()
                self._go("stopping")
            while self._process is not None:
                self._over.wait()


class Handler(BaseHTTPRequestHandler):
    """GET /state, POST /configure, /start, /stop, /abort, /reset; answers are JSON."""

    protocol_version = "HTTP/1.1"
    server_version = "penstock"
    sys_version = ""
    timeout = PATIENCE_S
    server: "Serving"

    def log_message(self, *_: object) -> None:
        """Every change of state is in the answers; no access log."""

    def address_string(self) -> str:
        return "local"  # of a local socket, which has no address

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    do_PUT = do_DELETE = do_PATCH = lambda self: self._answer("another")

    def _answer(self, method: str) -> None:
        try:
            # Before anything else: a connection that is closed with a body unread loses its answer.
            body = self._read()
            status, answer = 200, self._done(method, body)
        except Refused as refused:
            status, answer = refused.status, refused.answer
        text = json.dumps(answer).encode() + b"\n"
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        if status == 405:
            self.send_header("Allow", answer["allow"])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        # What is left of a body that was not read is no next request.
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        self.wfile.write(text)

    def _done(self, method: str, body: bytes) -> dict[str, Any]:
        token = self.server.token
        if token is not None:
            given = self.headers.get("Authorization", "").removeprefix("Bearer ").encode()
            if not hmac.compare_digest(given, token):
                raise Refused(401, "wrong or no token: send `Authorization: Bearer TOKEN`")
        name = self.path.removeprefix("/")
        if name not in ("state", *COMMANDS):
            raise Refused(404, f"{self.path}: there are /state and {', '.join(f'/{name}' for name in COMMANDS)}")
        right = "GET" if name == "state" else "POST"
        if method != right:
            raise Refused(405, f"{self.path} takes {right}", allow=right)
        return self.server.control.state() if name == "state" else self.server.control.carry_out(name, parsed(body))

    def _read(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or len(length) > LONGEST_LENGTH or self.headers.get("Transfer-Encoding"):
            raise Refused(411, "send the body with its Content-Length")
        if int(length) > LONGEST_BODY:
            # Read and dropped: closing with unread data resets the connection, and the answer is lost (RFC 9112, 9.6)
            rest = min(int(length), LONGEST_DROPPED)
            while rest and (dropped := self.rfile.read(min(rest, LONGEST_BODY))):
                rest -= len(dropped)
            raise Refused(413, f"a body of {length} bytes: allowed are {LONGEST_BODY}")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(400, f"a body of {len(body)} bytes: {length} were announced")  # RFC 9112, section 8
        return body


class Serving(ThreadingHTTPServer):
    """HTTP on TCP, with a token.

    Promise: clients use a bounded number of threads and descriptors, and slow or silent ones keep no other from its
    answer.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: Any, control: RunControl, token: bytes | None) -> None:
        self.control, self.token = control, token
        self._clients: list[socket.socket] = []  # the oldest first
        self._clients_lock = threading.Lock()
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._clients_lock:
            self._clients.append(request)
            late = self._clients[:-CLIENTS]
            del self._clients[:-CLIENTS]
        for client in late:
            with contextlib.suppress(OSError):  # its thread has just closed it
                client.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._clients_lock, contextlib.suppress(ValueError):
            self._clients.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class LocalServing(Serving):
    """HTTP on a local socket: the file's rights are the permission, as only its owner may use it."""

    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        before = os.umask(0o177)
        try:
            socketserver.TCPServer.server_bind(self)
        finally:
            os.umask(before)
        self.server_name, self.server_port = "local", 0


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m penstock.run_control", description="Run control of penstock recv.")
    parser.add_argument("--runs", type=Path, required=True, metavar="FOLDER", help="each run has a folder in it")
    parser.add_argument("--socket", type=Path, metavar="FILE", help="serve at a local socket, for its owner alone")
    parser.add_argument("--http", metavar="ADDRESS", help="serve HTTP, as 127.0.0.1:9300; needs --token-file")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="a line that clients have to send")
    parser.add_argument("--penstock", default="penstock", metavar="FILE", help="the command [default: %(default)s]")
    parser.add_argument("recv", nargs="+", metavar="OPTION", help="of `penstock recv`, after --: boards, back end, ...")
    return parser.parse_args(words)


def token_of(file: Path) -> bytes:
    try:
        token = file.read_bytes().strip()
        mode = file.stat().st_mode & 0o077
    except OSError as error:
        raise ValueError(f"--token-file {file}: {error.strerror}") from None
    if len(token) < SHORTEST_TOKEN:
        raise ValueError(f"--token-file {file}: {len(token)} characters: a token has {SHORTEST_TOKEN} or more")
    if mode:
        raise ValueError(f"--token-file {file}: others may read it; chmod 600 {file}")
    return token


def servers(options: argparse.Namespace, control: RunControl) -> list[Serving]:
    """ValueError: the request cannot be served."""
    if options.http is None and options.socket is None:
        raise ValueError("give --socket FILE or --http ADDRESS, or both")
    found: list[Serving] = []
    if options.http is not None:
        if options.token_file is None:
            raise ValueError("--http needs --token-file FILE")
        host, _, port = options.http.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"--http {options.http}: write address and port, as 127.0.0.1:9300")
        try:
            found.append(Serving((host, int(port)), control, token_of(options.token_file)))
        except OSError as error:
            raise ValueError(f"--http {options.http}: {error}") from None
    if options.socket is not None:
        try:
            if options.socket.is_socket():
                with socket.socket(socket.AF_UNIX) as probe:
                    if probe.connect_ex(str(options.socket)) == 0:
                        raise ValueError(f"--socket {options.socket}: another run control serves it")
                options.socket.unlink()  # of one that was killed
            found.append(LocalServing(str(options.socket), control, None))
        except OSError as error:
            raise ValueError(f"--socket {options.socket}: {error}") from None
    return found


def main(words: list[str]) -> int:
    options = arguments(words)
    try:
        if owned := [word for word in options.recv if word.split("=")[0] in OWNED]:
            raise ValueError(f"{owned[0]}: it is set for each run, by configure")
        command = shutil.which(options.penstock)
        if command is None:
            raise ValueError(f"--penstock {options.penstock}: there is no such command")
        control = RunControl([command, "recv", *options.recv], options.runs)
        serving = servers(options, control)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    for server in serving:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"run control at {server.server_address}", flush=True)
    stop.wait()
    control.close()
    for server in serving:
        server.shutdown()
    if options.socket is not None:
        options.socket.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
