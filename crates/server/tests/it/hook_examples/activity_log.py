import json
from datetime import datetime
from pathlib import Path

ACTIVITY = Path.home() / ".petasos" / "activity.jsonl"


async def handle(event_type: str, context: dict):
    entry = {"at": datetime.now().isoformat(), "event": event_type, **context}
    with open(ACTIVITY, "a") as log:
        log.write(json.dumps(entry) + "\n")
