"""One callback for each way in which plugins use hooks: audit, warn, count, recall, sync, cache, time, notify, redact."""

import json
import logging
import os
import re
import subprocess
import time
from collections import Counter, defaultdict
from datetime import datetime

import httpx

logger = logging.getLogger(__name__)
logger.addHandler(logging.FileHandler(os.path.join(os.environ["WORLD"], "plugin.log")))

SERVICE = "https://memory.example.com"
RISKY = {"terminal", "write_file", "patch"}
KEY = re.compile(r"sk-[A-Za-z0-9]{32,}")

calls = Counter()
errors = Counter()
times = defaultdict(list)
caches = {}
starts = {}
heard = {}


def audit(tool_name, args, task_id, **kwargs):
    logger.info("CALLED session=%s tool=%s args=%s", task_id, tool_name, json.dumps(args)[:200])


def warn(tool_name, **kwargs):
    if tool_name in RISKY:
        print(f"\u26a0 about to run {tool_name}")


def count(tool_name, result, duration_ms=0, **kwargs):
    calls[tool_name] += 1
    times[tool_name].append(duration_ms)
    try:
        if "error" in json.loads(result):
            errors[tool_name] += 1
    except (json.JSONDecodeError, TypeError):
        errors["unreadable"] += 1


def recall(session_id, user_message, is_first_turn, **kwargs):
    try:
        answer = httpx.post(f"{SERVICE}/recall", json={"session_id": session_id, "query": user_message}, timeout=3)
        found = answer.json().get("results", [])
        if not found:
            return None
        return {"context": "Recalled:\n" + "\n".join(f"- {memory['text']}" for memory in found)}
    except Exception:
        return None


def rules(**kwargs):
    return {"context": "Ask before anything is deleted."}


def sync(session_id, user_message, assistant_response, **kwargs):
    try:
        httpx.post(f"{SERVICE}/store", json={
            "session_id": session_id, "user": user_message, "assistant": assistant_response,
        }, timeout=5)
    except Exception:
        pass


def measure(session_id, assistant_response, model, **kwargs):
    logger.info("ANSWERED session=%s model=%s chars=%d", session_id, model, len(assistant_response or ""))


def begin(session_id, model, platform, **kwargs):
    caches[session_id] = {"model": model, "platform": platform, "since": datetime.now().isoformat()}
    starts[session_id] = time.time()


def finish(session_id, completed, interrupted, **kwargs):
    start, cache = starts.get(session_id), caches.pop(session_id, None)
    if cache:
        print(f"{session_id}: {'completed' if completed else 'interrupted' if interrupted else 'failed'}")
    if start:
        logger.info("TOOK session=%s seconds=%.1f completed=%s interrupted=%s counts=%s",
                    session_id, time.time() - start, completed, interrupted, json.dumps([calls, errors, len(times)]))


def subagent(parent_session_id, child_role, child_status, duration_ms, **kwargs):
    logger.info("CHILD parent=%s role=%s status=%s duration_ms=%d",
                parent_session_id, child_role, child_status, duration_ms)


def notify(command, description, session_key, **kwargs):
    subprocess.Popen(["osascript", "-e", f'display notification "{description}: {command[:80]}" with title "{session_key}"'])


def decided(command, choice, session_key, **kwargs):
    logger.info("DECIDED %s: %s for %s", choice, command[:60], session_key)


def redact(tool_name, result, **kwargs):
    if KEY.search(result):
        return KEY.sub("[REDACTED]", result)
    return None


def shorten(command, output, **kwargs):
    if command.startswith("find ") and len(output) > 50_000:
        head = "\n".join(output.splitlines()[:40])
        return f"{head}\n\n[{output.count(chr(10))} lines, the first 40 shown; exit {kwargs['exit_code']} in {kwargs['cwd']}]"
    return None


def strangers(event, **kwargs):
    source = event.source
    if source.chat_type == "dm" and source.chat_id == "stranger":
        return {"action": "skip", "reason": "not known"}
    return None


def overhear(event, **kwargs):
    buffer = heard.setdefault((event.source.platform, event.source.chat_id), [])
    if "@agent" in event.text:
        together = "\n".join(buffer + [event.text])
        buffer.clear()
        return {"action": "rewrite", "text": together}
    if event.text.startswith("/"):
        return None
    buffer.append(event.text)
    return {"action": "skip", "reason": "kept for later"}


def register(ctx):
    ctx.register_hook("pre_tool_call", audit)
    ctx.register_hook("pre_tool_call", warn)
    ctx.register_hook("post_tool_call", count)
    ctx.register_hook("pre_llm_call", recall)
    ctx.register_hook("pre_llm_call", rules)
    ctx.register_hook("post_llm_call", sync)
    ctx.register_hook("post_llm_call", measure)
    ctx.register_hook("on_session_start", begin)
    ctx.register_hook("on_session_end", finish)
    ctx.register_hook("subagent_stop", subagent)
    ctx.register_hook("pre_approval_request", notify)
    ctx.register_hook("post_approval_response", decided)
    ctx.register_hook("transform_tool_result", redact)
    ctx.register_hook("transform_terminal_output", shorten)
    ctx.register_hook("pre_gateway_dispatch", strangers)
    ctx.register_hook("pre_gateway_dispatch", overhear)
