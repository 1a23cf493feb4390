"""Has an agent work through a checklist when the gateway starts."""

import logging
import os
import threading
from pathlib import Path

logger = logging.getLogger("hooks.boot")
logger.addHandler(logging.FileHandler(os.path.join(os.environ["WORLD"], "boot.log")))
CHECKLIST = Path.home() / ".petasos" / "BOOT.md"


def work_through(content: str) -> None:
    try:
        from gateway.run import _resolve_gateway_model, _resolve_runtime_agent_kwargs
        from run_agent import AIAgent

        agent = AIAgent(model=_resolve_gateway_model(), **_resolve_runtime_agent_kwargs(), platform="gateway",
                        quiet_mode=True, skip_context_files=True, skip_memory=True, max_iterations=20)
        response = agent.run_conversation(f"Work through this:\n{content}").get("final_response", "")
        if response and "[SILENT]" not in response:
            logger.info("done: %s", response[:200])
        else:
            logger.info("done, nothing to report")
    except Exception as error:
        logger.error("failed: %s", error)


async def handle(event_type: str, context: dict) -> None:
    if not CHECKLIST.exists():
        return
    content = CHECKLIST.read_text(encoding="utf-8").strip()
    if content:
        threading.Thread(target=work_through, args=(content,), name="boot", daemon=True).start()
