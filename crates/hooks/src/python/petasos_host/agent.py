"""Stands for the modules by which handlers elsewhere start an agent of their own: `run_agent` and `gateway.run`.

Agents run in the server, with its models and credentials, so that nothing of either is here.
"""

import sys
import types
from importlib.machinery import ModuleSpec


class Agents:
    """Finds the modules, unless the user has modules of these names."""

    def __init__(self, calls):
        self._calls = calls

    def install(self):
        """Puts itself behind everything that finds modules."""
        sys.meta_path.append(self)

    def find_spec(self, name, path=None, target=None):
        """The module of this name, if it is one of ours."""
        if name not in ("run_agent", "gateway", "gateway.run"):
            return None
        return ModuleSpec(name, self, is_package=name == "gateway")

    def create_module(self, spec):
        """Makes a module."""
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        """Fills it."""
        calls = self._calls
        if module.__name__ == "run_agent":
            module.AIAgent = type("AIAgent", (AIAgent,), {"_calls": calls, "__module__": "run_agent"})
        elif module.__name__ == "gateway.run":
            module._resolve_gateway_model = lambda *_: calls.ask("default_model")
            module._resolve_runtime_agent_kwargs = lambda *_: dict(CREDENTIALS)


# What an agent is made with elsewhere. The server has its own.
CREDENTIALS = {"provider": None, "api_mode": None, "base_url": None, "api_key": None}


class AIAgent:
    """An agent with a session of its own in the server. What it cannot be told here is ignored."""

    def __init__(self, model=None, platform="gateway", max_iterations=None, ephemeral_system_prompt=None, **_):
        self.model = model or self._calls.ask("default_model")
        self.platform = platform or "gateway"
        self.max_iterations = max_iterations
        self.ephemeral_system_prompt = ephemeral_system_prompt
        self.session_id = None

    def run_conversation(self, user_message, system_message=None, conversation_history=None, **_):
        """Runs a turn and returns what came of it; `final_response` is the text. The next one goes on from there."""
        if conversation_history:
            raise NotImplementedError("conversation_history: an agent keeps its own conversation here")
        said = self._calls.ask("run_agent", text=str(user_message), model=self.model, platform=str(self.platform),
                               instructions=system_message or self.ephemeral_system_prompt,
                               most_calls=self.max_iterations, session_id=self.session_id)
        self.session_id = said["session_id"]
        return said

    def chat(self, message, **_):
        """Runs a turn and returns its text."""
        return self.run_conversation(message)["final_response"]
