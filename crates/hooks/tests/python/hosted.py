"""A host as the server starts one, for tests."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading

SOURCES = pathlib.Path(__file__).parents[2] / "src" / "python" / "petasos_host"
MODULES = ["wire", "calls", "agent", "loops", "cli", "plugins", "gateway", "host"]


class Hosted:
    """A running host with plugins that are written as text."""

    def __init__(self, **plugins):
        boot = (SOURCES / "boot.py").read_text()
        self.directory = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([sys.executable, "-c", boot], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self._number = 0
        self.told = []
        self.send([[name, (SOURCES / (name + ".py")).read_text()] for name in MODULES])
        self.loaded = {name: self.load(name, text) for name, text in plugins.items()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()
        self.process.stderr.close()
        self.directory.cleanup()

    def load(self, name, text):
        path = os.path.join(self.directory.name, name)
        os.mkdir(path)
        pathlib.Path(path, "__init__.py").write_text(text)
        return self.call("load", manifest={"key": name, "name": name, "path": path})

    def fire(self, number, **kwargs):
        return self.call("fire", function=number, kwargs=kwargs, edits=True)

    def call(self, op, **fields):
        """Sends a call and waits for its answer."""
        return self.answer(self.start(op, **fields))

    def start(self, op, **fields):
        self._number += 1
        self.send(dict(fields, op=op, id=self._number))
        return self._number

    def answer(self, number):
        """The next answer, which must be to this call. What is told in between is kept."""
        while True:
            message = self.receive()
            if "id" in message:
                assert message["id"] == number, message
                return message
            self.told.append(message)

    def asked(self):
        """The next thing that the host asks of the server."""
        while True:
            message = self.receive()
            if "ask" in message:
                return message
            self.told.append(message)

    def send(self, value):
        data = json.dumps(value).encode()
        self.process.stdin.write(struct.pack(">I", len(data)) + data)
        self.process.stdin.flush()

    def receive(self):
        watch = threading.Timer(20, self.process.kill)
        watch.start()
        try:
            (length,) = struct.unpack(">I", self.process.stdout.read(4))
            return json.loads(self.process.stdout.read(length))
        finally:
            watch.cancel()

    def registered(self, kind):
        return [message for message in self.told if message["op"] == "registered" and message["kind"] == kind]

    def logged(self):
        return [message["text"] for message in self.told if message["op"] == "log"]
