# SPDX-License-Identifier: Apache-2.0
"""EPICS: a Channel Access server with a process variable (PV) for each register.

    PENSTOCK:module-0:connected           0 or 1, in alarm where it is 0
    PENSTOCK:module-0:cc0:rate_ai         DBR_DOUBLE, units bit/s, control limits, writable
    PENSTOCK:module-0:cc0:rate_ai.SEVR    a field: VAL, DESC, EGU, HOPR, LOPR, NAME, PREC, RTYP, SEVR or STAT

Promise: a PV of a board that is silent keeps its last value, and is INVALID with status COMM. A write is answered after
the board has been written to and read back; the status gives the reason of a refusal.
Source: Channel Access protocol, version 4.13; caproto serves it.
"""

import asyncio
import logging
import re
from typing import Any

import caproto as ca
from caproto.asyncio.server import Context

from penstock.gateway.camera import BoardError, Camera, Gateway, Kind, Plain, Register, RegisterError

log = logging.getLogger("penstock.gateway")
PREFIX = re.compile(r"[A-Za-z0-9_:-]+")
LONGEST = 60  # of a PV's name in most clients
STRINGS = 16  # names of states that Channel Access has room for
STRING_BYTES = 40  # of a DBR_STRING, with its zero
SEVERITIES = ("NO_ALARM", "MINOR", "MAJOR", "INVALID")
STATUSES = {
    "read_only": ca.CAStatus.ECA_NOWTACCESS,
    "refused": ca.CAStatus.ECA_NOWTACCESS,
    "critical": ca.CAStatus.ECA_NOWTACCESS,
    "value": ca.CAStatus.ECA_BADTYPE,
    "silent": ca.CAStatus.ECA_DISCONN,
}


class Pv:
    """What makes a channel of caproto a PV with fields."""

    name: str
    description: str
    # Of an input and of an output.
    records: tuple[str, str]
    # Those of the channel.
    alarm: Any
    reported_record_type: str
    write: Any

    def get_field(self, field: str) -> Any:
        """The channel of a record's field, which the server asks for; KeyError: it has none of this name."""
        if field == "VAL":
            return self
        if not hasattr(self, "fields"):
            self.fields: dict[str, Any] = {}
        if field not in self.fields:
            self.fields[field] = self._field(field)
        return self.fields[field]

    def _field(self, field: str) -> Any:
        match field:
            case "SEVR":
                return FieldEnum(value=SEVERITIES[self.alarm.severity], enum_strings=SEVERITIES)
            case "STAT":
                return FieldString(value=self.alarm.status.name)
            case "DESC":
                whole = self.description
                return FieldString(value=whole if len(whole) < STRING_BYTES else f"{whole[: STRING_BYTES - 4]}...")
            case "EGU":
                return FieldString(value=getattr(self, "units", None) or "")
            case "NAME":
                return FieldString(value=self.name)
            case "RTYP":
                return FieldString(value=self.reported_record_type)
            case "HOPR" if hasattr(self, "upper_disp_limit"):
                return FieldDouble(value=float(self.upper_disp_limit))
            case "LOPR" if hasattr(self, "lower_disp_limit"):
                return FieldDouble(value=float(self.lower_disp_limit))
            case "PREC" if hasattr(self, "precision"):
                return FieldInteger(value=self.precision)
        raise KeyError(field)

    async def put(self, value: Any, status: ca.AlarmStatus, severity: ca.AlarmSeverity) -> None:
        """Publishes a value; its fields follow."""
        await self.write(value, status=status, severity=severity)
        await self.fields_follow()

    async def fields_follow(self) -> None:
        fields = getattr(self, "fields", {})
        for field, now in (("SEVR", SEVERITIES[self.alarm.severity]), ("STAT", self.alarm.status.name)):
            if field in fields:
                await fields[field].write(now)


class RegisterPv(Pv):
    """The PV of a register."""

    gateway: "EpicsGateway"
    board: int
    register: Register

    def check_access(self, hostname: str, username: str) -> ca.AccessRights:
        is_writable = self.register.writable and not self.gateway.camera.read_only
        return ca.AccessRights.READ | ca.AccessRights.WRITE if is_writable else ca.AccessRights.READ

    async def auth_write(
        self,
        hostname: str,
        username: str,
        data: Any,
        data_type: ca.ChannelType,
        metadata: Any,
        *,
        flags: int = 0,
        user_address: tuple[str, int] | None = None,
    ) -> ca.CAStatus:
        """A client's write, with its status; it comes here instead of to the channel's value."""
        peer = hostname if user_address is None else f"{user_address[0]}:{user_address[1]}"
        try:
            value = self.plain(data, data_type)
            return await self.gateway.write(self, value, f"{username}@{peer} by EPICS")
        except (ValueError, TypeError, IndexError, UnicodeDecodeError) as error:
            log.warning("%s@%s: %s: %s", username, peer, self.register.name, error)
            return ca.CAStatus.ECA_BADTYPE

    def plain(self, data: Any, data_type: ca.ChannelType) -> Plain:
        """What was sent, in the type of this PV. ValueError, TypeError: it cannot be that."""
        sent = ca.native_type(data_type)
        if len(data) != 1:
            raise ValueError(f"{len(data)} values, and it takes one")
        one = data[0]
        if sent == ca.ChannelType.STRING:
            # A text has its unit, as for `penstock ctl set`, or is a plain number.
            return one.decode() if isinstance(one, bytes) else str(one)
        if self.register.kind is Kind.TEXT:
            raise TypeError(f"{sent.name}, and it takes a STRING")
        if self.register.kind is Kind.QUANTITY:
            return float(one)
        if float(one) != int(one):
            raise ValueError(f"{one}, and it takes a whole number")
        return int(one)


class ReadOnly:
    """Clients read it."""

    def check_access(self, hostname: str, username: str) -> ca.AccessRights:
        return ca.AccessRights.READ


class FieldDouble(ReadOnly, ca.ChannelDouble):
    pass


class FieldInteger(ReadOnly, ca.ChannelInteger):
    pass


class FieldEnum(ReadOnly, ca.ChannelEnum):
    pass


class FieldString(ReadOnly, ca.ChannelString):
    pass


class ConnectedPv(Pv, ReadOnly, ca.ChannelInteger):
    description = "1: the board answers"
    records = ("longin", "longout")


class DoublePv(RegisterPv, ca.ChannelDouble):
    records = ("ai", "ao")


class IntegerPv(RegisterPv, ca.ChannelInteger):
    records = ("longin", "longout")


class EnumPv(RegisterPv, ca.ChannelEnum):
    records = ("mbbi", "mbbo")


class StringPv(RegisterPv, ca.ChannelString):
    records = ("stringin", "stringout")


def names_of(register: Register) -> list[str] | None:
    """The names of numbers 0, 1, 2..., where Channel Access has room for them."""
    count = max(register.states) + 1
    return [register.states.get(number, str(number))[:25] for number in range(count)] if count <= STRINGS else None


def channel_of(register: Register) -> Any:
    """A PV without a value: INVALID until it has one."""
    limits = {"lower_ctrl_limit": 0, "upper_ctrl_limit": register.high, "lower_disp_limit": 0}
    limits["upper_disp_limit"] = register.high
    alarm = ca.ChannelAlarm(status=ca.AlarmStatus.UDF, severity=ca.AlarmSeverity.INVALID_ALARM)
    units = "" if register.unit == "1" else register.unit
    if register.kind is Kind.TEXT:
        return StringPv(value="", alarm=alarm)
    if register.kind is Kind.STATE and (names := names_of(register)):
        return EnumPv(value=names[0], enum_strings=names, alarm=alarm)
    if register.kind is Kind.QUANTITY or register.high >= 2**31:
        precision = 9 if register.unit in ("s", "1") else 0
        return DoublePv(value=0.0, units=units, precision=precision, alarm=alarm, **limits)
    whole = {key: int(limit) for key, limit in limits.items()}
    return IntegerPv(value=0, units=units, alarm=alarm, **whole)


class EpicsGateway(Gateway):
    """The server."""

    def __init__(self, camera: Camera, host: str, port: int, prefix: str) -> None:
        if not PREFIX.fullmatch(prefix):
            raise ValueError(f"--prefix {prefix!r}: allowed are letters, digits, _ : and -")
        self.camera, self._host, self._port, self._prefix = camera, host, port, prefix
        self._names: list[str] = []
        for name in camera.names:
            # An address has dots, which end a PV's name.
            short = name.replace(".", "_").replace(":", "-")
            if not re.fullmatch(r"[A-Za-z0-9_-]+", short) or short in self._names:
                raise ValueError(
                    f"board {name!r}: give it a name of its own of letters, digits, _ and - in boards.toml"
                )
            self._names.append(short)
        self._pvs: dict[str, Any] = {}
        self._of: dict[int, list[Any]] = {}
        self._registers: dict[int, list[Register]] = {}
        self._connected: list[Any] = []
        self._server: asyncio.Task[None] | None = None

    def place(self) -> str:
        return f"{self._host}:{self._port}, {self._prefix}:{self._names[0]}:connected and others"

    async def start(self) -> None:
        logging.getLogger("caproto").setLevel(logging.CRITICAL)
        for name in self._names:
            alarm = ca.ChannelAlarm(status=ca.AlarmStatus.COMM, severity=ca.AlarmSeverity.MAJOR_ALARM)
            connected = ConnectedPv(value=0, alarm=alarm, reported_record_type="longin")
            connected.name = f"{self._prefix}:{name}:connected"
            self._connected.append(connected)
            self._pvs[connected.name] = connected
        context = Context(self._pvs, [self._host])
        context.ca_server_port = self._port
        started = asyncio.Event()

        async def is_up(*_: object) -> None:
            started.set()

        self._server = asyncio.create_task(context.run(log_pv_names=False, startup_hook=is_up))
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait([self._server, waiting], return_when=asyncio.FIRST_COMPLETED)
        if not started.is_set():
            waiting.cancel()
            await self._server
        self._port = context.port

    async def stop(self) -> None:
        if self._server is not None:
            self._server.cancel()
            await asyncio.gather(self._server, return_exceptions=True)

    def pv_name(self, board: int, register: Register) -> str:
        """cc[0].rate_ai: PREFIX:board:cc0:rate_ai"""
        short = register.name.replace("[", "").replace("]", "").replace(".", ":")
        return f"{self._prefix}:{self._names[board]}:{short}"

    async def found(self, board: int, registers: list[Register]) -> None:
        if self._registers.get(board) != registers:
            gone = {self.pv_name(board, register) for register in self._registers.get(board, [])}
            for name in [name for name in self._pvs if name.partition(".")[0] in gone]:  # the server adds fields
                del self._pvs[name]
            self._registers[board], self._of[board] = registers, []
            for register in registers:
                pv = channel_of(register)
                pv.gateway, pv.board, pv.register = self, board, register
                pv.name = name = self.pv_name(board, register)
                pv.description, pv.reported_record_type = register.description, pv.records[register.writable]
                if len(name) > LONGEST:
                    log.warning("%s: longer than the %d characters that most clients take", name, LONGEST)
                self._pvs[name] = pv
                self._of[board].append(pv)
        print(f"{self.camera.names[board]}: it answers", flush=True)
        await self._connected[board].put(1, ca.AlarmStatus.NO_ALARM, ca.AlarmSeverity.NO_ALARM)

    async def lost(self, board: int, why: str) -> None:
        print(f"{self.camera.names[board]}: {why}", flush=True)
        await self._connected[board].put(0, ca.AlarmStatus.COMM, ca.AlarmSeverity.MAJOR_ALARM)
        for pv in self._of.get(board, []):
            await pv.alarm.write(status=ca.AlarmStatus.COMM, severity=ca.AlarmSeverity.INVALID_ALARM)
            await pv.fields_follow()

    async def changed(self, board: int, values: list[tuple[Register, Plain]]) -> None:
        for register, value in values:
            pv = self._of[board][register.at]
            if isinstance(pv, DoublePv):
                value = float(value)
            elif isinstance(pv, EnumPv):
                value = pv.enum_strings[int(value)] if int(value) < len(pv.enum_strings) else int(value)
            await pv.put(value, ca.AlarmStatus.NO_ALARM, ca.AlarmSeverity.NO_ALARM)

    async def write(self, pv: RegisterPv, value: Plain, operator: str) -> ca.CAStatus:
        """What became of a client's write, as a status of Channel Access."""
        try:
            await self.camera.write(self, pv.board, pv.register, value, operator)
        except (RegisterError, BoardError) as error:
            log.warning("%s: %s", operator, error)
            return STATUSES.get(error.kind, ca.CAStatus.ECA_PUTFAIL)
        except OSError as error:
            log.warning("%s: %s", operator, error)
            return ca.CAStatus.ECA_DISCONN
        return ca.CAStatus.ECA_NORMAL
