import os

import httpx

STEPS = 2
TOKEN = os.getenv("TELEGRAM_BOT_TOKEN")
CHAT = os.getenv("TELEGRAM_HOME_CHANNEL")


async def handle(event_type: str, context: dict):
    iteration = context.get("iteration", 0)
    if iteration == STEPS and TOKEN and CHAT:
        text = f"{iteration} steps so far, last: " + ", ".join(context.get("tool_names", []))
        async with httpx.AsyncClient() as client:
            await client.post(f"https://chat.example.com/bot{TOKEN}/send", json={"chat_id": CHAT, "text": text})
