"""What the host does for the server and for plugins, from outside."""

import pathlib
import textwrap
import unittest

from hosted import Hosted


def plugin(text):
    return textwrap.dedent(text)


HOOK = """
def register(ctx):
    ctx.register_hook("pre_tool_call", hook)
"""


class Callbacks(unittest.TestCase):
    def test_results_and_edits_come_back(self):
        text = plugin("""
            def hook(args, arguments, **kwargs):
                arguments["added"] = kwargs["tool_name"]
                return {"action": "block", "message": "no"}
        """) + HOOK
        with Hosted(guard=text) as host:
            answer = host.fire(0, tool_name="terminal", args={"command": "ls"}, arguments={})
            self.assertEqual(answer["result"], {"action": "block", "message": "no"})
            self.assertEqual(answer["args"], {"command": "ls", "added": "terminal"})
            self.assertEqual([hook["name"] for hook in host.registered("hook")], ["pre_tool_call"])

    def test_narrow_signatures_get_what_they_name(self):
        text = plugin("""
            class Guard:
                def hook(self, tool_name):
                    return tool_name
            hook = Guard().hook
        """) + HOOK
        with Hosted(guard=text) as host:
            self.assertEqual(host.fire(0, tool_name="terminal", args={})["result"], "terminal")

    def test_async_callbacks_are_awaited(self):
        text = plugin("""
            import asyncio
            async def hook(**kwargs):
                await asyncio.sleep(0)
                return "done"
        """) + HOOK
        with Hosted(slow=text) as host:
            self.assertEqual(host.fire(0)["result"], "done")

    def test_exceptions_exits_and_odd_results_are_errors(self):
        text = plugin("""
            import sys
            class Odd(dict):
                pass
            def hook(how, **kwargs):
                if how == "raise":
                    raise ValueError("oh no")
                if how == "exit":
                    sys.exit(3)
                if how == "nan":
                    return {"action": "block", "score": [float("nan"), float("-inf"), 1.5]}
                if how == "loop":
                    odd = {}
                    odd["odd"] = odd
                    return odd
                return {1, 2}.__class__
        """) + HOOK
        with Hosted(odd=text) as host:
            failed = host.fire(0, how="raise")
            self.assertEqual(failed["error"], "ValueError: oh no")
            self.assertIn("in hook", failed["trace"])
            self.assertEqual(host.fire(0, how="exit")["error"], "SystemExit: 3")
            self.assertEqual(host.fire(0, how="nan")["result"], {"action": "block", "score": [None, None, 1.5]})
            self.assertIn("cannot be sent", host.fire(0, how="loop")["error"])
            self.assertEqual(host.fire(0, how="class")["result"], "<class 'set'>")

    def test_one_that_blocks_holds_up_nobody(self):
        text = plugin("""
            import threading
            gate = threading.Event()
            def hook(role, **kwargs):
                gate.wait() if role == "wait" else gate.set()
                return role
        """) + HOOK
        with Hosted(gate=text) as host:
            waiting = [host.start("fire", function=0, kwargs={"role": "wait"}) for _ in range(5)]
            opening = host.start("fire", function=0, kwargs={"role": "open"})
            answers = {message["id"]: message["result"] for message in (host.receive() for _ in range(6))}
            self.assertEqual(answers, {**{number: "wait" for number in waiting}, opening: "open"})

    def test_code_that_holds_its_event_loop_holds_up_no_other_call(self):
        holds = plugin("""
            import threading
            import petasos_host.loops
            petasos_host.loops.PATIENCE = 0
            gate = threading.Event()
            async def hook(role, **kwargs):
                gate.wait() if role == "hold" else None
                gate.set() if role == "open" else None
                return role
        """) + HOOK
        other = plugin("""
            async def hook(**kwargs):
                return {"action": "block", "message": "other"}
        """) + HOOK
        with Hosted(holds=holds, other=other) as host:
            holding = host.start("fire", function=0, kwargs={"role": "hold"})
            self.assertEqual(host.fire(1)["result"]["message"], "other")
            for _ in range(3):
                self.assertEqual(host.fire(0, role="pass")["result"], "pass")
            opening = host.start("fire", function=0, kwargs={"role": "open"})
            answers = {message["id"]: message["result"] for message in (host.receive() for _ in range(2))}
            self.assertEqual(answers, {holding: "hold", opening: "open"})

    def test_an_event_loop_is_the_same_from_call_to_call(self):
        text = plugin("""
            import asyncio
            queue = None
            async def fill():
                for number in range(3):
                    await asyncio.sleep(0)
                    await queue.put(number)
            async def hook(**kwargs):
                global queue
                if queue is None:
                    queue = asyncio.Queue(1)
                    asyncio.get_running_loop().create_task(fill())
                return await queue.get()
        """) + HOOK
        with Hosted(keeps=text) as host:
            waiting = [host.start("fire", function=0, kwargs={}) for _ in range(3)]
            answers = {message["id"]: message["result"] for message in (host.receive() for _ in waiting)}
            self.assertEqual(sorted(answers.values()), [0, 1, 2])

    def test_an_endless_loop_can_be_abandoned(self):
        text = plugin("""
            import asyncio, logging
            def hook(**kwargs):
                logging.info("begun")
                while True:
                    pass
            async def other(**kwargs):
                logging.info("begun")
                await asyncio.sleep(3600)
            def register(ctx):
                ctx.register_hook("pre_tool_call", hook)
                ctx.register_hook("pre_tool_call", other)
        """)
        with Hosted(loop=text) as host:
            for function in (0, 1):
                number = host.start("fire", function=function, kwargs={})
                self.assertEqual(host.receive()["text"], "begun")
                host.send({"op": "abandon", "call": number})
                self.assertEqual(host.answer(number)["error"], "it was over its time limit")
            self.assertNotIn("error", host.call("ping"))


class Disturbances(unittest.TestCase):
    def test_prints_closed_streams_and_forks_do_no_harm(self):
        text = plugin("""
            import os, sys, subprocess
            def hook(**kwargs):
                print("to stdout")
                os.write(1, b"raw\\n")
                subprocess.run(["echo", "from a child"])
                sys.stdout.close()
                os.closerange(3, 64)
                os.fork()
                return os.getpid()
        """) + HOOK
        with Hosted(noise=text) as host:
            self.assertEqual(host.fire(0)["result"], host.process.pid)
            self.assertNotIn("error", host.call("ping"))
            host.process.stdin.close()
            printed = host.process.stderr.read().decode()
        self.assertEqual(printed.split("\n")[:3], ["to stdout", "raw", "from a child"])

    def test_monkey_patches_do_not_reach_the_protocol(self):
        text = plugin("""
            import json, os, struct
            import builtins, threading
            json.dumps = json.loads = struct.pack = struct.unpack = os.write = threading.Thread = None
            builtins.print = builtins.open = None
            def hook(**kwargs):
                return 1
        """) + HOOK
        with Hosted(patch=text) as host:
            self.assertEqual(host.fire(0)["result"], 1)


class Plugins(unittest.TestCase):
    def test_one_that_fails_to_load_says_why(self):
        with Hosted(broken="import nothing_of_that_name", empty="", exits="import sys; sys.exit(1)") as host:
            self.assertIn("nothing_of_that_name", host.loaded["broken"]["error"])
            self.assertIn("register(ctx)", host.loaded["empty"]["error"])
            self.assertEqual(host.loaded["exits"]["error"], "SystemExit: 1")

    def test_nonsense_is_ignored_and_logged(self):
        text = plugin("""
            def register(ctx):
                ctx.register_hook("pre_tool_call", "not a function")
                ctx.register_hook(None, print)
                ctx.register_tool("half")
                ctx.register_context_engine(object())
                ctx.register_command("/Hello World", lambda raw: "hi " + raw)
                assert ctx.manifest.author is None
        """)
        with Hosted(nonsense=text) as host:
            self.assertNotIn("error", host.loaded["nonsense"])
            self.assertEqual(len(host.logged()), 4)
            self.assertEqual([told["method"] for told in host.registered("ignored")], ["register_context_engine"])
            (command,) = host.registered("command")
            self.assertEqual(command["name"], "hello-world")
            self.assertEqual(host.call("command", function=command["function"], args="you")["result"], "hi you")

    def test_plugins_import_their_own_modules(self):
        with Hosted() as host:
            path = pathlib.Path(host.directory.name, "two-files")
            path.mkdir()
            path.joinpath("__init__.py").write_text("from . import other\nregister = other.register\n")
            path.joinpath("other.py").write_text("def register(ctx):\n    ctx.register_hook('x', print)\n")
            manifest = {"key": "two-files", "name": "two-files", "path": str(path)}
            self.assertNotIn("error", host.call("load", manifest=manifest))

    def test_tools_get_arguments_and_give_text(self):
        text = plugin("""
            SCHEMA = {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}
            def register(ctx):
                ctx.register_tool("add", "sums", SCHEMA, lambda args, **kw: {"sum": args["a"] + args["b"]})
                ctx.register_tool("off", "sums", SCHEMA, print, check_fn=lambda: False)
                ctx.register_tool("key", "sums", SCHEMA, print, requires_env=["NOT_SET_ANYWHERE"])
        """)
        with Hosted(sums=text) as host:
            add, off, key = host.registered("tool")
            self.assertEqual((add["description"], add["parameters"]), ("Adds.", {"type": "object"}))
            self.assertIsNone(add["missing"])
            self.assertEqual(off["missing"], "its check says no")
            self.assertIn("NOT_SET_ANYWHERE", key["missing"])
            answer = host.call("tool", function=add["function"], args={"a": 1, "b": 2}, kwargs={"task_id": "t"})
            self.assertEqual(answer["result"], '{"sum": 3}')

    def test_what_is_asked_of_the_server_names_the_call(self):
        text = plugin("""
            def register(ctx):
                async def hook(**kwargs):
                    return [ctx.dispatch_tool("todo", {"a": 1}), ctx.inject_message("hello")]
                ctx.register_hook("pre_tool_call", hook)
        """)
        with Hosted(asks=text) as host:
            number = host.start("fire", function=0, kwargs={})
            first = host.asked()
            self.assertEqual((first["op"], first["call"], first["args"]), ("dispatch_tool", number, {"a": 1}))
            host.send({"ask": first["ask"], "error": "no"})
            second = host.asked()
            self.assertEqual((second["op"], second["text"]), ("inject_message", "hello"))
            host.send({"ask": second["ask"], "result": True})
            self.assertEqual(host.answer(number)["result"], ['{"error": "no"}', True])


class Gateway(unittest.TestCase):
    def test_handlers_are_told_of_events(self):
        with Hosted() as host:
            path = pathlib.Path(host.directory.name, "handler.py")
            path.write_text("async def handle(event_type, context):\n    return [event_type, context]\n")
            number = host.call("load_handler", name="my-hook", path=str(path))["function"]
            answer = host.call("emit", function=number, event="agent:start", context={"platform": "test"})
            self.assertEqual(answer["result"], ["agent:start", {"platform": "test"}])

    def test_messages_have_the_gateways_objects(self):
        text = plugin("""
            async def hook(event, gateway, session_store, **kwargs):
                assert event.source.platform == "telegram" and event.source.platform.value == "telegram"
                assert event.source.thread_id is None and event.internal is False
                sent = await gateway.adapters[event.source.platform].send(event.source.chat_id, "hello")
                session_store.append_to_transcript("s", {"role": "user", "content": event.text})
                event.text = "changed"
                return {"action": "skip", "reason": sent.message_id}
            def register(ctx):
                ctx.register_hook("pre_gateway_dispatch", hook)
        """)
        event = {"text": "hi", "internal": False, "source": {"platform": "telegram", "chat_id": "7"}}
        with Hosted(policy=text) as host:
            number = host.start("dispatch", function=0, kwargs={"event": event, "gateway": {"platforms": ["telegram"]}})
            send = host.asked()
            self.assertEqual((send["platform"], send["chat_id"], send["content"]), ("telegram", "7", "hello"))
            host.send({"ask": send["ask"], "result": {"success": True, "message_id": "m1"}})
            append = host.asked()
            self.assertEqual(append["message"], {"role": "user", "content": "hi"})
            host.send({"ask": append["ask"], "result": None})
            answer = host.answer(number)
            self.assertEqual((answer["result"]["reason"], answer["text"]), ("m1", "changed"))


if __name__ == "__main__":
    unittest.main()
