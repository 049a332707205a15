# SPDX-License-Identifier: Apache-2.0
"""The command line of the gateway: an error in it ends with status 2 before anything is served."""

import argparse
import asyncio
import signal
import sys
import tomllib
from pathlib import Path

from penstock.gateway.camera import REGISTERS, Camera, Gateway
from penstock.quantities import parsed

EXTRAS = {"opcua": "asyncua", "epics": "caproto"}


def duration(text: str) -> float:
    value, unit = parsed(text)
    if unit != "s" or not isinstance(value, float) or value < 1e-3:
        raise argparse.ArgumentTypeError(f"{text!r} is no time of 1ms or more; write one as 1s or 200ms")
    return value


def listed(path: Path) -> list[tuple[str, str]]:
    """Name and address of each board of `boards.toml`; a board without a name has its address for one."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    boards: list[tuple[str, str]] = []
    tables = document.get("board", [])
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"{path}: no boards; write a table [[board]] with an address for each")
    for number, table in enumerate(tables):
        address, name = table.get("address"), table.get("name", table.get("address"))
        if not isinstance(address, str) or not isinstance(name, str) or not name:
            raise ValueError(f'{path}: [[board]] number {number + 1} needs address = "10.0.0.2"; its name is a text')
        if name in (other for other, _ in boards):
            raise ValueError(f"{path}: two boards are named {name!r}; each has a name of its own")
        boards.append((name, address))
    return boards


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m penstock.gateway", description=__doc__)
    protocols = parser.add_subparsers(dest="protocol", required=True)
    for protocol, words_of in (("opcua", "OPC UA"), ("epics", "EPICS Channel Access")):
        one = protocols.add_parser(protocol, help=f"serve boards over {words_of}")
        one.add_argument("boards", type=Path, metavar="FILE", help="boards.toml: addresses and names of [[board]]")
        one.add_argument(
            "--registers",
            default=",".join(REGISTERS),
            metavar="NAMES",
            help="what is served of each board, names as for `penstock ctl get` [default: %(default)s]",
        )
        one.add_argument("--interval", type=duration, default=1.0, metavar="TIME", help="between looks [default: 1s]")
        one.add_argument(
            "--patience", type=duration, default=1.0, metavar="TIME", help="with a silent board [default: 1s]"
        )
        one.add_argument("--read-only", action="store_true", help="refuse all writes")
        one.add_argument("--journal", type=Path, metavar="FILE", help="of writes [default: that of `penstock ctl`]")
        one.add_argument("--host", default="127.0.0.1", help="address to serve at [default: %(default)s]")
    protocols.choices["opcua"].add_argument("--port", type=int, default=4840, help="TCP port [default: %(default)s]")
    epics = protocols.choices["epics"]
    epics.add_argument("--port", type=int, default=5064, help="UDP and TCP port [default: %(default)s]")
    epics.add_argument("--prefix", default="PENSTOCK", help="of all names [default: %(default)s]")
    return parser.parse_args(words)


async def serve(gateway: Gateway, camera: Camera) -> None:
    """Until SIGINT or SIGTERM, or a failure of the gateway itself."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await gateway.start()
    print(f"serving {len(camera.names)} boards at {gateway.place()}", flush=True)
    work = [asyncio.create_task(part) for part in (camera.run(gateway), stop.wait())]
    done, rest = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await gateway.stop()
    for task in done:
        task.result()


def made(options: argparse.Namespace, camera: Camera) -> Gateway:
    try:
        if options.protocol == "opcua":
            from penstock.gateway.opcua import OpcUaGateway

            return OpcUaGateway(camera, options.host, options.port)
        from penstock.gateway.epics import EpicsGateway

        return EpicsGateway(camera, options.host, options.port, options.prefix)
    except ModuleNotFoundError as error:
        package = EXTRAS[options.protocol]
        raise ValueError(f"{error}: install {package}, by `pip install 'penstock[{options.protocol}]'`") from None


def main(words: list[str]) -> int:
    options = arguments(words)
    try:
        if not 1 <= options.port <= 65535:
            raise ValueError(f"--port {options.port}: allowed is 1 to 65535")
        names = [name.strip() for name in options.registers.split(",") if name.strip()]
        camera = Camera(
            listed(options.boards), names, options.interval, options.patience, options.journal, options.read_only
        )
        gateway = made(options, camera)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        asyncio.run(serve(gateway, camera))
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
