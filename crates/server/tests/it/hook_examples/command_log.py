import json
from datetime import datetime
from pathlib import Path

COMMANDS = Path.home() / ".petasos" / "logs" / "commands.jsonl"


def handle(event_type: str, context: dict):
    COMMANDS.parent.mkdir(parents=True, exist_ok=True)
    entry = {"at": datetime.now().isoformat(), "command": context.get("command"), "args": context.get("args"),
             "platform": context.get("platform"), "user": context.get("user_id")}
    with open(COMMANDS, "a") as log:
        log.write(json.dumps(entry) + "\n")
