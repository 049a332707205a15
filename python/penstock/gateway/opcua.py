# SPDX-License-Identifier: Apache-2.0
"""OPC UA: Objects/Penstock has an object for each board, and in it a variable for each register.

    ns=2;s=module-0                    the board: connected, problem, its registers
    ns=2;s=module-0/cc[0].rate_ai      Double, EngineeringUnits bit/s, EURange, writable

Promise: a variable has a value with a good status, or a status with the reason. A write is answered with the status
defined in part 4 of the standard (`STATUSES`), after the board has been written to and read back.
Source: OPC 10000-3 (address space), -4 (services), -8 (data access: units and ranges); units by UNECE code.
"""

import asyncio
import dataclasses
import logging
import re
from datetime import UTC, datetime
from typing import Any

from asyncua import Node, Server, ua
from asyncua.common.event_objects import BaseEvent
from asyncua.server.internal_server import InternalServer
from asyncua.server.internal_session import InternalSession
from asyncua.server.user_managers import User, UserManager, UserRole

from penstock.gateway.camera import BoardError, Camera, Gateway, Kind, Plain, Register, RegisterError

log = logging.getLogger("penstock.gateway")
NAMESPACE = "urn:penstock:boards"
UNECE = "http://www.opcfoundation.org/UA/units/un/cefact"
UNITS = {"bit/s": "A59", "s": "SEC", "1": "C62", "B": "AD", "kHz": "KHZ"}
STATUSES = {
    "name": ua.StatusCodes.BadNodeIdUnknown,
    "read_only": ua.StatusCodes.BadNotWritable,
    "refused": ua.StatusCodes.BadNotWritable,
    "critical": ua.StatusCodes.BadUserAccessDenied,
    "range": ua.StatusCodes.BadOutOfRange,
    "value": ua.StatusCodes.BadOutOfRange,
    "silent": ua.StatusCodes.BadNoCommunication,
    "busy": ua.StatusCodes.BadResourceUnavailable,
    "differs": ua.StatusCodes.BadDeviceFailure,
    "journal": ua.StatusCodes.BadInternalError,
}
SEVERITY = {True: 100, False: 800}  # of the event when a board is back, and when it is lost


def unece_number(code: str) -> int:
    """UnitId: the code's characters as bytes of one number (OPC 10000-8, 5.6.3)."""
    return int.from_bytes(code.encode())


def type_of(register: Register) -> ua.VariantType:
    match register.kind:
        case Kind.QUANTITY:
            return ua.VariantType.Double
        case Kind.TEXT:
            return ua.VariantType.String
        case Kind.NUMBER if register.high >= 2**32:
            return ua.VariantType.UInt64
    return ua.VariantType.UInt32


def is_variant(value: object, kind: ua.VariantType) -> bool:
    """Whether a written value is one, and no array."""
    return isinstance(value, ua.Variant) and value.VariantType == kind and not value.is_array


class Anyone(UserManager):
    """No passwords: any client that reaches the port may use it. No client may change the address space."""

    def get_user(
        self, iserver: Any, username: str | None = None, password: str | None = None, certificate: Any = None
    ) -> User:
        return User(role=UserRole.User, name=username)


class ClientSession(InternalSession):
    """A client: its writes go to the boards."""

    gateway: "OpcUaGateway"

    async def write(self, params: ua.WriteParameters) -> list[ua.StatusCode]:
        peer = ":".join(str(part) for part in self.name) if isinstance(self.name, tuple) else str(self.name)
        user = getattr(self.user, "name", None) or "anonymous"
        turns: dict[int | None, list[int]] = {}
        for number, item in enumerate(params.NodesToWrite):
            turns.setdefault(self.gateway.board_of(item.NodeId), []).append(number)
        codes = [ua.StatusCodes.BadInternalError] * len(params.NodesToWrite)

        async def of_board(numbers: list[int]) -> None:
            for number in numbers:
                codes[number] = await self.gateway.write(params.NodesToWrite[number], f"{user}@{peer} by OPC UA")

        await asyncio.gather(*(of_board(numbers) for numbers in turns.values()))
        return [ua.StatusCode(code) for code in codes]


class BoardServer(InternalServer):
    gateway: "OpcUaGateway"

    def create_session(self, name: str, user: User | None = None, external: bool = False) -> InternalSession:
        if not external:
            return super().create_session(name, user or User(role=UserRole.Admin), external)
        session = ClientSession(self, self.aspace, self.subscription_service, name, external=True)
        session.gateway = self.gateway
        return session


@dataclasses.dataclass
class BoardNodes:
    """What a board has in the address space."""

    node: Node
    connected: Node
    problem: Node
    events: Any
    registers: list[Register] = dataclasses.field(default_factory=list)
    variables: list[ua.NodeId] = dataclasses.field(default_factory=list)


class OpcUaGateway(Gateway):
    """The server."""

    def __init__(self, camera: Camera, host: str, port: int) -> None:
        for name in camera.names:
            if not re.fullmatch(r"[^/]+", name):
                raise ValueError(f"board {name!r}: a name has no / here")
        self._camera, self._host, self._port = camera, host, port
        self._boards: list[BoardNodes] = []
        self._of: dict[ua.NodeId, tuple[int, Register]] = {}
        self._server: Server

    def place(self) -> str:
        return f"opc.tcp://{self._host}:{self._port}/penstock/"

    async def start(self) -> None:
        logging.getLogger("asyncua").setLevel(logging.ERROR)
        inner = BoardServer(user_manager=Anyone())
        inner.gateway = self
        self._server = server = Server(iserver=inner)
        await server.init()
        server.set_endpoint(self.place())
        server.set_server_name("Penstock boards")
        server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
        self._space = await server.register_namespace(NAMESPACE)
        root = await server.nodes.objects.add_object(self._id("Penstock"), self._name("Penstock"))
        for name in self._camera.names:
            node = await root.add_object(self._id(name), self._name(name))
            connected = await node.add_variable(self._id(f"{name}/connected"), self._name("connected"), False)
            problem = await node.add_variable(self._id(f"{name}/problem"), self._name("problem"), "not yet found")
            events = await server.get_event_generator(ua.ObjectIds.DeviceFailureEventType, node)
            self._boards.append(BoardNodes(node, connected, problem, events))
        await server.start()

    async def stop(self) -> None:
        await self._server.stop()

    def _id(self, name: str) -> ua.NodeId:
        return ua.NodeId(name, self._space)

    def _name(self, name: str) -> ua.QualifiedName:
        return ua.QualifiedName(name, self._space)

    async def found(self, board: int, registers: list[Register]) -> None:
        of = self._boards[board]
        if of.registers != registers:
            await self._build(board, registers)
        await self._publish(board, True, "")

    async def lost(self, board: int, why: str) -> None:
        for node in self._boards[board].variables:
            await self._set(node, ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadNoCommunication)))
        await self._publish(board, False, why)

    async def _publish(self, board: int, is_there: bool, why: str) -> None:
        of, name = self._boards[board], self._camera.names[board]
        await of.connected.write_value(is_there)
        await of.problem.write_value(why)
        event: BaseEvent = of.events.event
        event.Severity = SEVERITY[is_there]
        event.SourceName = name
        text = f"{name}: it answers" if is_there else f"{name}: {why}"
        print(text, flush=True)
        await of.events.trigger(message=text)

    async def changed(self, board: int, values: list[tuple[Register, Plain]]) -> None:
        of, now = self._boards[board], datetime.now(UTC)
        for register, value in values:
            variant = ua.Variant(value, type_of(register))
            data = ua.DataValue(variant, SourceTimestamp=now, ServerTimestamp=now)
            await self._set(of.variables[register.at], data)

    async def _set(self, node: ua.NodeId, data: ua.DataValue) -> None:
        """Past the services: they are for clients."""
        await self._server.iserver.aspace.write_attribute_value(node, ua.AttributeIds.Value, data)

    async def _build(self, board: int, registers: list[Register]) -> None:
        of, name = self._boards[board], self._camera.names[board]
        if of.registers:
            children = await of.node.get_children()
            await self._server.delete_nodes(
                [c for c in children if c not in (of.connected, of.problem)], recursive=True
            )
            for node in of.variables:
                self._of.pop(node, None)
        of.registers, of.variables = registers, []
        folders: dict[str, Node] = {"": of.node}
        wholes = {register.name for register in registers}
        for register in registers:
            parent = register.name.rpartition(".")[0]
            if parent not in folders:
                # A register with several fields is a variable, and has them as its components.
                made = self._id(f"{name}/{parent}")
                if parent not in wholes:
                    await of.node.add_object(made, self._name(parent))
                folders[parent] = self._server.get_node(made)
            node = await self._variable(folders[parent], f"{name}/{register.name}", register)
            of.variables.append(node)
            self._of[node] = (board, register)

    async def _variable(self, parent: Node, path: str, register: Register) -> ua.NodeId:
        kind = type_of(register)
        empty: Plain = "" if kind == ua.VariantType.String else 0.0 if kind == ua.VariantType.Double else 0
        node = await parent.add_variable(self._id(path), self._name(register.path[-1]), empty, varianttype=kind)
        waiting = ua.StatusCode(ua.StatusCodes.BadWaitingForInitialData)
        await self._set(node.nodeid, ua.DataValue(StatusCode=waiting))
        await node.write_attribute(
            ua.AttributeIds.Description, ua.DataValue(ua.Variant(ua.LocalizedText(register.description)))
        )
        if register.writable and not self._camera.read_only:
            await node.set_writable()
        if register.unit in UNITS:
            unit = ua.EUInformation(
                NamespaceUri=UNECE,
                UnitId=unece_number(UNITS[register.unit]),
                DisplayName=ua.LocalizedText(register.unit),
                Description=ua.LocalizedText(register.unit),
            )
            await node.add_property(self._id(f"{path}/EngineeringUnits"), ua.QualifiedName("EngineeringUnits"), unit)
        if register.writable and register.kind in (Kind.QUANTITY, Kind.NUMBER):
            limits = ua.Range(Low=0.0, High=register.high)
            await node.add_property(self._id(f"{path}/EURange"), ua.QualifiedName("EURange"), limits)
        if register.kind is Kind.STATE:
            names = [ua.EnumValueType(number, ua.LocalizedText(text)) for number, text in register.states.items()]
            await node.add_property(self._id(f"{path}/EnumValues"), ua.QualifiedName("EnumValues"), names)
        return node.nodeid

    def board_of(self, node: ua.NodeId) -> int | None:
        found = self._of.get(node)
        return None if found is None else found[0]

    async def write(self, item: ua.WriteValue, operator: str) -> int:
        """What became of a client's write, as a status code."""
        found = self._of.get(item.NodeId)
        if found is None:
            is_there = item.NodeId in self._server.iserver.aspace
            return ua.StatusCodes.BadNotWritable if is_there else ua.StatusCodes.BadNodeIdUnknown
        board, register = found
        if item.AttributeId != ua.AttributeIds.Value or item.IndexRange:
            return ua.StatusCodes.BadWriteNotSupported
        if item.Value.StatusCode is not None and not item.Value.StatusCode.is_good():
            return ua.StatusCodes.BadWriteNotSupported
        if not register.writable:
            return ua.StatusCodes.BadNotWritable
        if not is_variant(item.Value.Value, type_of(register)):
            return ua.StatusCodes.BadTypeMismatch
        try:
            await self._camera.write(self, board, register, item.Value.Value.Value, operator)
        except (RegisterError, BoardError) as error:
            log.warning("%s: %s", operator, error)
            return STATUSES.get(error.kind, ua.StatusCodes.BadUnexpectedError)
        except OSError as error:
            log.warning("%s: %s", operator, error)
            return ua.StatusCodes.BadNoCommunication
        return ua.StatusCodes.Good
