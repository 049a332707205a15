# SPDX-License-Identifier: Apache-2.0
"""The parameters of congestion control in SystemVerilog: enumerations, a packed struct for each law, how it is made of
the words of its registers, and these words after reset at a clock and line rate."""

from parameters import LAWS, Parameter, parameters_of
from register_model import Group
from write_sv import camel


def is_enumeration(p: Parameter) -> bool:
    """The law has its own in penstock_pkg, as queue pairs and parameters choose among the same."""
    return p.kind == "choice" and p.name != "law"


def type_of(p: Parameter) -> str:
    if is_enumeration(p):
        return f"{p.name}_e"
    return "logic" if p.field.width == 1 else f"logic [{p.field.width - 1}:0]"


def enumeration(p: Parameter) -> list[str]:
    names = [f"    {camel(p.name, name.replace('-', '_'))} = {p.field.width}'d{code}" for code, name in p.field.values]
    return [f"  typedef enum logic [{p.field.width - 1}:0] {{", ",\n".join(names), f"  }} {p.name}_e;", ""]


def value(p: Parameter) -> str:
    word = f"words[{p.register.offset // 4}]"
    bits = word if p.is_whole else f"{word}[{p.field.low}+:{p.field.width}]"
    return f"{p.name}_e'({bits})" if is_enumeration(p) else bits


def reset_word(p: Parameter) -> str:
    """Of a register that follows from the build; rounded to the nearest, as penstock_cc does."""
    if p.name == "rate_line":
        return "rate_of(64'(line_mbps) * 64'd125_000, clk_khz)"
    if p.preset is not None and p.kind == "rate":
        return f"rate_of(64'd{p.preset // 8}, clk_khz)"
    if p.preset is not None and p.kind == "time":
        return f"cycles_of(64'd{p.preset // 10**6}, clk_khz)"
    return f"32'h{p.reset:08X}"


def law_lines(group: Group) -> list[str]:
    parameters = parameters_of(group)
    struct, words = f"{group.name}_params_t", f"{camel(group.name)}Words"
    lines = [line for p in parameters if is_enumeration(p) for line in enumeration(p)]
    lines += [f"  // The parameters of {LAWS[group.name].upper()}.", "  typedef struct packed {"]
    lines += [f"    {type_of(p)} {p.name};" for p in parameters]
    lines += [
        f"  }} {struct};",
        "",
        f"  localparam int unsigned {words} = {len(group.registers)};  // registers of a group",
        f"  typedef logic [{words}-1:0][31:0] {group.name}_words_t;",
        "",
        f"  function automatic {struct} {group.name}_params_of({group.name}_words_t words);",
        "    return '{",
        ",\n".join(f"      {p.name}: {value(p)}" for p in parameters),
        "    };",
        "  endfunction",
        "",
        f"  function automatic {group.name}_words_t {group.name}_reset_words(",
        "    int unsigned clk_khz, int unsigned line_mbps",
        "  );",
    ]
    for register in group.registers:
        of_register = [p for p in parameters if p.register is register]
        word = (
            reset_word(of_register[0])
            if of_register[0].is_whole
            else f"32'h{sum(p.reset << p.field.low for p in of_register):08X}"
        )
        lines.append(f"    {group.name}_reset_words[{register.offset // 4}] = {word};")
    return [*lines, "  endfunction", ""]


RATES = """\
  // A clock's parameters from physical units, rounded to the nearest: Q8.24 bytes per cycle, and cycles.
  function automatic logic [31:0] rate_of(longint unsigned bytes_per_s, int unsigned clk_khz);
    return 32'(((bytes_per_s << 24) + clk_khz * 64'd500) / (clk_khz * 64'd1000));
  endfunction
  function automatic logic [31:0] cycles_of(longint unsigned microseconds, int unsigned clk_khz);
    return 32'((microseconds * clk_khz + 64'd500) / 64'd1000);
  endfunction
"""


def parameter_lines(groups: list[Group]) -> list[str]:
    found = [group for group in groups if group.name in LAWS]
    return [RATES, *(line for group in found for line in law_lines(group))]
