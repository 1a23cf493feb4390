"""The host: what the server can ask for, and where logs go."""

import logging
import threading

from .agent import Agents
from .calls import Calls
from .gateway import GatewayHooks, Gateways
from .plugins import Plugins
from .wire import NotJson, Wire

MAX_LINE = 4000


class LogHandler(logging.Handler):
    """Sends what plugins log to the server's log."""

    def __init__(self, calls):
        super().__init__()
        self._calls = calls

    def emit(self, record):
        try:
            text = self.format(record)[:MAX_LINE]
            self._calls.tell("log", level=record.levelname, logger=record.name, text=text)
        except (NotJson, OSError):
            self.handleError(record)


def run(inbox, outbox):
    """Serves until the server goes."""
    operations = {}
    calls = Calls(Wire(inbox, outbox), operations)
    plugins = Plugins(calls)
    hooks = GatewayHooks(calls)
    operations.update(
        load=plugins.load,
        fire=plugins.fire,
        dispatch=Gateways(calls, plugins).dispatch,
        tool=plugins.run_tool,
        command=plugins.run_command,
        cli=plugins.run_cli,
        load_handler=hooks.load,
        emit=hooks.emit,
    )
    Agents(calls).install()
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[LogHandler(calls)])
    # Workers come and go; this thread stays, because the process would end with it.
    threading.Thread(target=calls.work, daemon=True).start()
    threading.Event().wait()
