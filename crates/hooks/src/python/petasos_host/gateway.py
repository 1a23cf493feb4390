"""Gateway hooks, and what stands for the gateway's own objects: those live in the server."""

from .loops import Loops
from .plugins import import_file


class GatewayHooks:
    """Imports handlers and calls them."""

    def __init__(self, calls):
        self._calls = calls
        self._handlers = []

    def load(self, message):
        """Imports a handler, and answers with its number."""
        module = import_file("hermes_hook_" + message["name"].replace("-", "_"), message["path"])
        handle = getattr(module, "handle", None)
        if not callable(handle):
            raise ImportError("it has no function handle(event_type, context)")
        self._handlers.append((handle, Loops()))
        return {"function": len(self._handlers) - 1}

    def emit(self, message):
        """Tells a handler of an event."""
        handle, loops = self._handlers[message["function"]]
        return {"result": self._calls.run(loops, handle, message["event"], message["context"])}


class Gateways:
    """Gives `pre_gateway_dispatch` objects for what it is told about, and finds out what it did to them."""

    def __init__(self, calls, plugins):
        self._calls = calls
        self._plugins = plugins

    def dispatch(self, message):
        """Calls a callback about a message that has come in."""
        event = MessageEvent(message["kwargs"]["event"])
        platforms = (message["kwargs"].get("gateway") or {}).get("platforms") or []
        live = {"event": event, "gateway": Gateway(self._calls, platforms), "session_store": SessionStore(self._calls)}
        before = event.text
        answer = self._plugins.fire(dict(message, kwargs=dict(message["kwargs"], **live)))
        if event.text != before:
            answer["text"] = str(event.text)
        return answer


class Fields:
    """Attributes from an object of JSON; those that it does not have are None."""

    def __init__(self, fields):
        self.__dict__.update(fields)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def __repr__(self):
        return "%s(%r)" % (type(self).__name__, self.__dict__)


class Platform(str):
    """The name of a platform, which code may read as a string or as a member of an enumeration."""

    @property
    def value(self):
        return str(self)

    @property
    def name(self):
        return self.upper()


class Source(Fields):
    """Where a message comes from."""

    def __init__(self, fields):
        super().__init__(fields)
        self.platform = Platform(fields.get("platform") or "")


class MessageEvent(Fields):
    """A message that has come in."""

    def __init__(self, fields):
        super().__init__(fields)
        self.source = Source(fields.get("source") or {})


class Gateway:
    """The gateway: its adapters by platform."""

    def __init__(self, calls, platforms):
        self.adapters = {Platform(name): Adapter(calls, name) for name in platforms}


class Adapter:
    """One platform's adapter."""

    def __init__(self, calls, platform):
        self._calls = calls
        self.platform = Platform(platform)

    def send(self, chat_id, content, reply_to=None, metadata=None, **_):
        """Sends a message. It is on its way when this returns; awaiting it gives what came of it."""
        sent = self._calls.ask("gateway_send", platform=self.platform, chat_id=str(chat_id), content=str(content),
                               reply_to=reply_to, metadata=metadata)
        return Done(Fields(sent if isinstance(sent, dict) else {"success": bool(sent)}))


class Done:
    """Something that has happened already and may be awaited all the same."""

    def __init__(self, result):
        self._result = result

    def __await__(self):
        return self._result
        yield

    def __getattr__(self, name):
        return getattr(self._result, name)


class SessionStore:
    """The sessions of chats."""

    def __init__(self, calls):
        self._calls = calls

    def append_to_transcript(self, session_id, message, **_):
        """Adds a message to a session without starting a turn."""
        return self._calls.ask("append_to_transcript", session_id=str(session_id), message=message)

    def get_or_create_session(self, source, **_):
        """The session of a chat; a new one if there is none."""
        fields = {name: value for name, value in vars(source).items()}
        return Fields(self._calls.ask("session_of_chat", source=fields))
