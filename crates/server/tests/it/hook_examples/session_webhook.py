import httpx

ADDRESS = "https://sessions.example.com/hook"


async def handle(event_type: str, context: dict):
    async with httpx.AsyncClient() as client:
        await client.post(ADDRESS, json={"event": event_type, **context}, timeout=5)
