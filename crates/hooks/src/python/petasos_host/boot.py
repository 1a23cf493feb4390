"""Starts the host. The interpreter is given this text; everything else comes over the pipes.

The pipes to the server move away from standard input and output before any plugin is imported. What plugins print
goes to the log.
"""

import sys

# The directory in which the host starts is no place to import from, not even what follows here.
sys.path[:] = [entry for entry in sys.path if entry not in ("", ".")]

import fcntl
import json
import os
import struct
import types

# High enough that code which closes "all" low descriptors leaves it alone.
LOWEST = 500


def take_pipes():
    """Moves the pipes out of reach; whatever a plugin starts does not inherit them."""
    inbox = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    outbox = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
    sys.stderr.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)
    return open(inbox, "rb", buffering=1 << 16), outbox


def load(modules):
    """Makes the package `petasos_host` of its sources, in the order in which they need each other."""
    package = types.ModuleType("petasos_host")
    package.__path__ = []
    sys.modules["petasos_host"] = package
    for name, source in modules:
        module = types.ModuleType("petasos_host." + name)
        module.__package__ = "petasos_host"
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(source, "petasos_host/" + name + ".py", "exec"), module.__dict__)
    return package


def main():
    inbox, outbox = take_pipes()
    (length,) = struct.unpack(">I", inbox.read(4))
    package = load(json.loads(inbox.read(length)))
    package.host.run(inbox, outbox)


main()
