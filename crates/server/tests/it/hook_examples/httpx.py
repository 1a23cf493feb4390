"""Stands for the HTTP client that examples use: writes requests down, and answers the ones that ask for something."""

import json
import os


class Response:
    def json(self):
        return {"results": [{"text": "the user likes short answers"}]}


def _note(url, body):
    with open(os.path.join(os.environ["WORLD"], "posted.jsonl"), "a") as notes:
        notes.write(json.dumps([url, body]) + "\n")


def post(url, json=None, timeout=None):
    _note(url, json)
    return Response()


class AsyncClient:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def post(self, url, json=None, timeout=None):
        _note(url, json)
        return Response()
