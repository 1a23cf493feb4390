"""Runs a script that can call tools: import them from petasos_tools.

The server writes answers to standard input and reads calls from standard error, one JSON object in a line each.
Both are put aside here, so that the script has neither.
"""
import json, os, runpy, sys, threading, types

answers = os.fdopen(os.dup(0), "r", encoding="utf-8")
calls = os.fdopen(os.dup(2), "w", encoding="utf-8")
nothing = os.open(os.devnull, os.O_RDONLY)
os.dup2(nothing, 0)
os.dup2(1, 2)
lock = threading.Lock()
parameters = json.loads(sys.argv[2])


class ToolError(Exception):
    """What a tool said instead of a result."""


def call(tool, arguments):
    with lock:
        calls.write(json.dumps({"tool": tool, "input": arguments}) + "\n")
        calls.flush()
        line = answers.readline()
    if not line:
        raise ToolError("the server does not answer")
    answer = json.loads(line)
    if answer["is_error"]:
        raise ToolError(answer["text"])
    try:
        return json.loads(answer["text"])
    except ValueError:
        return answer["text"]


def function(tool):
    def run(*values, **named):
        return call(tool, {**dict(zip(parameters[tool], values)), **named})

    run.__name__ = tool
    return run


module = types.ModuleType("petasos_tools")
module.ToolError = ToolError
for name in parameters:
    setattr(module, name, function(name))
sys.modules["petasos_tools"] = module
script = sys.argv[1]
sys.argv = [script]
sys.path.insert(0, os.getcwd())
runpy.run_path(script, run_name="__main__")
