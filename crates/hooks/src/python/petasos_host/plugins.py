"""Plugins: importing them, and the context that their `register(ctx)` is given."""

import functools
import importlib.util
import json
import logging
import os
import re
import sys
import types

from .calls import Refused, describe
from .cli import CliCommand
from .loops import Loops

# Under this package plugins find themselves and each other.
PACKAGE = "hermes_plugins"
ENTRY_POINTS = "hermes_agent.plugins"

SKILL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

log = logging.getLogger("petasos.plugins")


class Plugins:
    """All plugins of this host, and what they have registered, by number."""

    def __init__(self, calls):
        self._calls = calls
        self._registered = []

    def load(self, message):
        """Imports a plugin and lets it register. What it registers is told to the server one by one."""
        manifest = Manifest(message["manifest"])
        module = import_plugin(manifest)
        register = getattr(module, "register", None)
        if not callable(register):
            raise ImportError("it has no register(ctx)")
        loops = Loops()
        self._calls.run(loops, register, PluginContext(manifest, self._calls, self, loops))
        return {}

    def add(self, function, loops):
        """Keeps a function for later calls on its plugin's loops, and returns its number."""
        self._registered.append((function, accepted_names(function), loops))
        return len(self._registered) - 1

    def fire(self, message):
        """Calls a callback with keyword arguments."""
        function, accepted, loops = self._registered[message["function"]]
        kwargs = message["kwargs"]
        if message.get("cwd"):
            kwargs.setdefault("cwd", message["cwd"])
        if "args" in kwargs and "arguments" in kwargs:
            # Two names of one thing: an edit through either is seen through both.
            kwargs["arguments"] = kwargs["args"]
        given = kwargs if accepted is None else {name: kwargs[name] for name in accepted if name in kwargs}
        answer = {"result": self._calls.run(loops, function, **given)}
        if not message.get("returns", True):
            answer["result"] = None
        if "args" in kwargs and message.get("edits"):
            answer["args"] = kwargs["args"]
        return answer

    def run_tool(self, message):
        """Calls the handler of a tool. The result is text: JSON by convention, and made so if it is none."""
        function, accepted, loops = self._registered[message["function"]]
        kwargs = message["kwargs"]
        given = kwargs if accepted is None else {name: kwargs[name] for name in accepted[1:] if name in kwargs}
        result = self._calls.run(loops, function, message["args"], **given)
        return {"result": as_text(result)}

    def run_command(self, message):
        """Calls the handler of a slash command with what follows its name."""
        function, _, loops = self._registered[message["function"]]
        result = self._calls.run(loops, function, message["args"])
        return {"result": None if result is None else str(result)}

    def run_cli(self, message):
        """Runs a command of the command line, and answers with what it printed and its exit code."""
        command, _, loops = self._registered[message["function"]]
        return {"result": command.run(message["args"], functools.partial(self._calls.run, loops))}


class Manifest(types.SimpleNamespace):
    """What `plugin.yaml` says, read by the server. What it does not say is None."""

    def __init__(self, fields):
        super().__init__(**fields)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class PluginContext:
    """What a plugin can do. Nonsense is logged and ignored, so that the rest of the plugin works."""

    def __init__(self, manifest, calls, plugins, loops):
        self.manifest = manifest
        self.profile_name = "default"
        self._calls = calls
        self._add = functools.partial(plugins.add, loops=loops)

    def register_hook(self, hook_name, callback):
        """Has a callback called at a point of a turn."""
        if not self._is_callable("hook", hook_name, callback):
            return
        called = getattr(callback, "__qualname__", type(callback).__qualname__)
        self._tell("hook", name=hook_name, callback=called, function=self._add(callback))

    def register_tool(self, name, toolset=None, schema=None, handler=None, check_fn=None, requires_env=None,
                      is_async=False, description="", emoji="", override=False, **_):
        """Gives agents a tool."""
        if not self._is_callable("tool", name, handler):
            return
        schema = schema if isinstance(schema, dict) else {}
        self._tell(
            "tool",
            name=name,
            toolset=toolset,
            function=self._add(handler),
            description=description or schema.get("description") or "",
            parameters=parameters(schema),
            read_only=bool((schema.get("annotations") or {}).get("readOnlyHint")),
            override=bool(override),
            missing=why_missing(check_fn, requires_env),
        )

    def register_command(self, name, handler, description="", args_hint="", **_):
        """Gives people a slash command."""
        name = str(name).strip().lower().lstrip("/").replace(" ", "-")
        if name and self._is_callable("command", name, handler):
            function = self._add(handler)
            self._tell("command", name=name, function=function, description=description, args_hint=args_hint)

    def register_cli_command(self, name, help="", setup_fn=None, handler_fn=None, description="", **_):
        """Gives the program a command. `setup_fn` adds its arguments to a parser, `handler_fn` gets what was parsed."""
        if not self._is_callable("command line", name, handler_fn or setup_fn):
            return
        command = CliCommand(name, description or help, setup_fn, handler_fn)
        self._tell("cli_command", name=name, description=str(help or description), function=self._add(command))

    def register_skill(self, name, path, description="", **_):
        """Gives agents a skill that they can view as `plugin:name`. The path is that of its SKILL.md or directory."""
        path = os.path.join(self.manifest.path or "", str(path))
        if not isinstance(name, str) or not SKILL_NAME.fullmatch(name) or not os.path.exists(path):
            log.warning("%s: the skill %r was ignored: it needs a name of letters, digits, '_' and '-', and there must be %s",
                        self.manifest.name, name, path)
            return
        self._tell("skill", name=name, path=path, description=str(description or ""))

    def dispatch_tool(self, tool_name, args=None, **_):
        """Calls a tool as the model would. The result is text: JSON, and an object with `error` if it failed."""
        try:
            return self._calls.ask("dispatch_tool", name=tool_name, args=args or {})
        except Refused as error:
            return json.dumps({"error": str(error)})

    def inject_message(self, content, role="user", session_id=None, session_key=None, **_):
        """Puts a message into a session: that of the call under way unless one is named. Says whether it worked."""
        text = content if role == "user" else "[%s] %s" % (role, content)
        try:
            return bool(self._calls.ask("inject_message", text=text, session_id=session_id or session_key))
        except Refused as error:
            log.warning("%s: a message was not delivered: %s", self.manifest.name, error)
            return False

    def __getattr__(self, name):
        """Whatever else can be registered elsewhere has no use here. The rest of the plugin may, so that is no error."""
        if not name.startswith("register_"):
            raise AttributeError("the plugin context has no %s" % name)
        return functools.partial(self._ignore, name)

    def _ignore(self, method, *_, **__):
        log.warning("%s: %s is not supported here and was ignored", self.manifest.name, method)
        self._tell("ignored", method=method)

    def _is_callable(self, what, name, function):
        if isinstance(name, str) and name and callable(function):
            return True
        log.warning("%s: the %s %r was ignored: it needs a name and a function, and has %r",
                    self.manifest.name, what, name, function)
        return False

    def _tell(self, kind, **fields):
        self._calls.tell("registered", plugin=self.manifest.key, kind=kind, **fields)


def import_plugin(manifest):
    """Imports the package of a plugin, from its directory or as an installed package."""
    if manifest.entry_point:
        return import_entry_point(manifest.entry_point)
    package = sys.modules.get(PACKAGE)
    if package is None:
        package = sys.modules[PACKAGE] = types.ModuleType(PACKAGE)
        package.__path__ = []
    slug = manifest.key.replace("/", "__").replace("-", "_")
    path = os.path.join(manifest.path, "__init__.py")
    return import_file("%s.%s" % (PACKAGE, slug), path, search=[manifest.path])


def import_entry_point(name):
    """The module of an installed plugin, or the one that has its `register`."""
    from importlib import metadata

    found = metadata.entry_points()
    group = found.select(group=ENTRY_POINTS) if hasattr(found, "select") else found.get(ENTRY_POINTS, ())
    for entry in group:
        if entry.name == name:
            loaded = entry.load()
            return types.SimpleNamespace(register=loaded) if callable(loaded) else loaded
    raise ImportError("neither plugins/ nor an installed package has a plugin %r" % name)


def import_file(name, path, search=None):
    """Imports a file under a name. If that fails, no trace of it is left."""
    if not os.path.isfile(path):
        raise ImportError("there is no %s" % path)
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=search)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def accepted_names(function):
    """The names of a function's parameters in their order; None if it takes any."""
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None)
    if code is not None and not hasattr(plain, "__wrapped__"):
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[1 if plain is not function else 0:count]
        return None if code.co_flags & 0x08 else names
    import inspect

    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in found):
        return None
    return tuple(parameter.name for parameter in found)


def parameters(schema):
    """The JSON Schema of a tool's arguments, from a function definition or as it is."""
    if isinstance(schema.get("parameters"), dict):
        return schema["parameters"]
    if schema.get("type") == "object":
        return {key: value for key, value in schema.items() if key not in ("name", "description", "annotations")}
    return {"type": "object", "properties": {}}


def why_missing(check, requires_env):
    """Why a tool cannot be used here; None if it can."""
    unset = [name for name in requires_env or () if isinstance(name, str) and not os.environ.get(name)]
    if unset:
        return "the environment has no %s" % ", ".join(unset)
    try:
        return None if check is None or check() else "its check says no"
    except Exception as error:
        return "its check failed: %s" % describe(error)


def as_text(result):
    """What a handler returned, as text."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
