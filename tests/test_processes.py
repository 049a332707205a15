# SPDX-License-Identifier: Apache-2.0
"""No test goes on while a process that it has killed may still hold a port, a lock or a file."""

import ast
from pathlib import Path

from conftest import ROOT
from test_links import TRACKED


def calls_of(function: ast.FunctionDef) -> list[ast.Call]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Call)]


def waits(call: ast.Call, process: str) -> bool:
    """Whether a call waits for a process: by its own method, or a function that takes it, such as `ended`."""
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in ("wait", "communicate")
    return (is_method and ast.unparse(call.func.value) == process) or any(
        ast.unparse(word) == process for word in call.args
    )


def left_alone(text: str) -> list[str]:
    """The processes that a function kills without waiting for them afterwards."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    found = []
    for function in functions:
        calls = calls_of(function)
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "kill" and not call.args:
                process = ast.unparse(call.func.value)
                if not any(later.lineno >= call.lineno and waits(later, process) for later in calls):
                    found.append(f"{call.lineno}: {process}.kill() in {function.name}")
    return found


def test_every_process_that_is_killed_is_waited_for() -> None:
    texts = {path: (ROOT / path).read_text() for path in TRACKED if path.suffix == ".py" and path.parts[0] == "tests"}
    found = [f"{path}:{site}" for path, text in texts.items() if ".kill()" in text for site in left_alone(text)]
    assert found == [], "`killed` of tests/processes.py kills and waits"


def test_a_process_that_is_left_alone_is_found() -> None:
    text = "def test():\n    one.kill()\n    two.kill()\n    two.wait()\n    three.kill()\n    ended(three)\n"
    assert left_alone(text) == ["2: one.kill() in test"]
    assert left_alone(Path(__file__).with_name("processes.py").read_text()) == []
