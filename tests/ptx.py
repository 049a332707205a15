# SPDX-License-Identifier: Apache-2.0
"""Executes PTX thread by thread without a GPU, with the instructions used in crates/gpu/kernels/kernels.ptx.

Promise: an unknown instruction is an error, never skipped. Threads run one after the other, so this checks the
computation of a thread but not interactions between threads. Source: PTX ISA 7.8, chapter 9.
"""

import operator
import re
from collections.abc import Callable

LOCAL = 1 << 40  # addresses of a thread's own memory; below are those of the device

COMPARE = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
TWO: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
}
ONE: dict[str, Callable[[int], int]] = {
    "mov": lambda a: a,
    "cvt": lambda a: a,
    "cvta": lambda a: a,
    "not": operator.invert,
    "neg": operator.neg,
    "popc": int.bit_count,
    "brev": lambda a: int(f"{a:032b}"[::-1], 2),
    "bfind": lambda a: 32 - a.bit_length() if a else -1,  # .shiftamt: the shift that makes it the highest bit
}


class Kernel:
    """One `.entry` of a PTX module."""

    def __init__(self, module: str, name: str) -> None:
        head, body = re.search(rf"\.entry {name}\(([^)]*)\)\s*\{{(.*?)\n\}}", module, re.DOTALL).groups()
        self.parameters = re.findall(r"\.param \.u\d+ (\w+)", head)
        self.code: list[tuple] = []
        self.labels: dict[str, int] = {}
        for line in body.splitlines():
            text = line.split("//")[0].strip()
            if text.endswith(":"):
                self.labels[text[:-1]] = len(self.code)
            elif text and not text.startswith("."):
                guard, opcode, operands = re.fullmatch(r"(?:@(!?%p\d+)\s+)?([\w.]+)\s*(.*);", text).groups()
                words = [word.strip() for word in re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,\s][^,]*", operands)]
                self.code.append((guard, opcode.split("."), words))

    def launch(self, blocks: int, threads: int, memory: bytearray, *values: int) -> None:
        """Runs all threads of a grid over the device's memory, whose addresses begin at 0."""
        parameters = dict(zip(self.parameters, values, strict=True))
        for block in range(blocks):
            for thread in range(threads):
                special = {"%ntid.x": threads, "%ctaid.x": block, "%tid.x": thread}
                Thread(memory, parameters | special).run(self)


class Thread:
    def __init__(self, memory: bytearray, names: dict[str, int]) -> None:
        self.device, self.local = memory, bytearray(1024)
        self.names = names | {"__local_depot1": LOCAL}

    def run(self, kernel: Kernel) -> None:
        at = 0
        while True:
            guard, opcode, operands = kernel.code[at]
            at += 1
            if guard and bool(self.names[guard.lstrip("!")]) == guard.startswith("!"):
                continue
            if opcode[0] == "ret":
                return
            if opcode[0] == "bra":
                at = kernel.labels[operands[0]]
            else:
                self.step(opcode, operands)

    def value(self, word: str) -> int:
        if word.startswith("{"):
            parts = [self.value(part.strip()) for part in word[1:-1].split(",")]
            return sum(part << 16 * i for i, part in enumerate(parts))
        return self.names[word] if word in self.names else int(word, 0)

    def signed(self, word: str, kind: str) -> int:
        bits = int(kind[1:])
        value = self.value(word) & (1 << bits) - 1
        return value - (1 << bits) if kind[0] == "s" and value >> bits - 1 else value

    def place(self, word: str) -> tuple[bytearray, int]:
        base, _, offset = word[1:-1].partition("+")
        address = self.value(base) + int(offset or 0)
        return (self.local, address - LOCAL) if address >= LOCAL else (self.device, address)

    def step(self, opcode: list[str], words: list[str]) -> None:
        name, kind = opcode[0], opcode[-1]
        bits = 1 if kind == "pred" else int(kind[1:])

        def operand(word: str) -> int:
            return self.value(word) if kind == "pred" else self.signed(word, kind)

        if name in ("ld", "st", "atom"):
            self.access(opcode, words, bits // 8)
            return
        if name == "setp":
            result = COMPARE[opcode[1]](operand(words[1]), operand(words[2]))
        elif name == "selp":
            result = self.value(words[1] if self.value(words[3]) else words[2])
        elif name == "mad":
            result = operand(words[1]) * operand(words[2]) + operand(words[3])
        elif name in ("shl", "shr"):
            by = min(self.value(words[2]) & 0xFFFFFFFF, bits)
            result = operand(words[1]) << by if name == "shl" else operand(words[1]) >> by
        elif name in TWO:
            result = TWO[name](operand(words[1]), operand(words[2]))
        else:
            result = ONE[name](operand(words[1]))
        if opcode[:2] == ["mul", "wide"]:
            bits *= 2
        elif name == "cvt":
            bits = int(opcode[1][1:])
        self.names[words[0]] = result & (1 << bits) - 1

    def access(self, opcode: list[str], words: list[str], size: int) -> None:
        if opcode[1] == "param":
            self.names[words[0]] = self.value(words[1][1:-1])
            return
        memory, at = self.place(words[0] if opcode[0] == "st" else words[1])
        assert at % size == 0 and 0 <= at <= len(memory) - size, f"{'.'.join(opcode)} at {at:#x}"
        if opcode[0] == "st":
            stored = words[1][1:-1].split(",") if words[1].startswith("{") else [words[1]]
            values = [self.value(word.strip()) & (1 << 8 * size) - 1 for word in stored]
            memory[at : at + size * len(values)] = b"".join(value.to_bytes(size, "little") for value in values)
            return
        if words[0].startswith("{"):
            for i, name in enumerate(words[0][1:-1].split(",")):
                place = at + size * i
                assert place <= len(memory) - size, f"{'.'.join(opcode)} at {place:#x}"
                self.names[name.strip()] = int.from_bytes(memory[place : place + size], "little")
            return
        before = int.from_bytes(memory[at : at + size], "little")
        if opcode[0] == "atom":
            after = TWO[opcode[2]](before, self.value(words[2])) & (1 << 8 * size) - 1
            memory[at : at + size] = after.to_bytes(size, "little")
        self.names[words[0]] = before
