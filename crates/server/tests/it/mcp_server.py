"""An MCP server on standard input and output that misbehaves on request.

Arguments name faults: `hang` (never answers), `dies` (ends at once), `lists-nonsense` (a list of tools that is none).
`more` adds tools with content of other kinds than text, with progress, and with schemas that vendors refuse;
`instructs` says how to use the tools. A file named after `ended=` is written when the input ends.
"""
import base64
import json
import os
import struct
import sys
import time

faults = sys.argv[1:]
tools = [
    {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
     "annotations": {"readOnlyHint": True}},
    {"name": "write", "inputSchema": {"type": "object"}},
    {"name": "lying", "inputSchema": {"type": "object", "properties": {"a": {"type": "whatever"}}}},
    {"name": "hang", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "die", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "flood", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "nonsense", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "fail", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "grow", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "long", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "environment", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x06\0\0\0"
if "more" in faults:
    only_looks = {"readOnlyHint": True}
    forms = {"anyOf": [
        {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"], "additionalProperties": False},
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": False},
    ]}
    tools += [
        {"name": "picture", "inputSchema": {"type": "object"}, "annotations": only_looks},
        {"name": "forms", "inputSchema": {"type": "object", **forms}, "annotations": only_looks},
        {"name": "nullable", "inputSchema": {"type": ["object", "null"]}, "annotations": only_looks},
        {"name": "works", "inputSchema": {"type": "object"}, "annotations": only_looks},
    ]


def work(token, steps, pause):
    for step in range(steps):
        time.sleep(pause)
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
    return text("worked")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def call(name, arguments):
    if name == "echo":
        return text(arguments.get("text", ""))
    if name == "write":
        return text("written")
    if name == "picture":
        data = base64.b64encode(PNG).decode()
        return {"content": [
            {"type": "text", "text": "Look."},
            {"type": "image", "data": data, "mimeType": "image/png"},
            {"type": "image", "data": "aaaa", "mimeType": "image/png"},
            {"type": "audio", "data": "aaaa", "mimeType": "audio/wav"},
        ]}
    if name == "forms":
        return text(json.dumps(arguments, sort_keys=True))
    if name == "fail":
        return text("it cannot be done", isError=True)
    if name == "environment":
        return text(" ".join(sorted(os.environ)))
    if name == "long":
        return text("".join(f"line {number}\n" for number in range(20_000)))
    if name == "grow":
        tools.append({"name": "new", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}})
        send({"method": "notifications/tools/list_changed"})
        return text("grown")
    if name == "die":
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "nonsense":
        return {"content": "nonsense", "isError": "maybe"}
    if name == "flood":
        for _ in range(5000):
            sys.stderr.write("x" * 80 + "\n")
            send({"method": "notifications/message", "params": {"level": "info", "data": "y" * 80}})
        sys.stdout.write("this is not JSON\n")
        return text("z" * 10_000_000)
    raise KeyError(name)


if "dies" in faults:
    sys.stderr.write("no licence found\n")
    sys.exit(1)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if "hang" in faults or id is None:
        continue
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "misbehaving", "version": "1"}
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        if "instructs" in faults:
            result["instructions"] = "Call echo first.\x07\n" + "z" * 5000
        send({"id": id, "result": result})
    elif method == "tools/list":
        listed = [{"name": 7}] if "lists-nonsense" in faults else tools
        send({"id": id, "result": {"tools": listed}})
    elif method == "tools/call":
        params = message["params"]
        if params["name"] == "hang":
            continue
        if params["name"] == "works":
            token = params["_meta"]["progressToken"]
            send({"id": id, "result": work(token, **params["arguments"])})
            continue
        try:
            send({"id": id, "result": call(params["name"], params.get("arguments") or {})})
        except KeyError:
            send({"id": id, "error": {"code": -32602, "message": "there is no such tool"}})
    else:
        send({"id": id, "error": {"code": -32601, "message": "unknown method"}})
for fault in faults:
    if fault.startswith("ended="):
        open(fault[len("ended="):], "w").close()
