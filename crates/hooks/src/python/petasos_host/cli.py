"""Commands of the command line that plugins bring, as `argparse` knows them."""

import contextlib
import io


class CliCommand:
    """One command: what adds its arguments, and what is called with them."""

    def __init__(self, name, description, setup, handler):
        self._name = name
        self._description = description
        self._setup = setup
        self._handler = handler

    def run(self, words, call):
        """What the command prints and returns. There is no terminal here, so it is handed over whole."""
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            try:
                result = self._carry_out(words, call)
                code = result if isinstance(result, int) else 0
            except SystemExit as end:
                # So do parsers end that are not content, and some commands that are.
                code = end.code or 0
                if not isinstance(code, int):
                    stderr.write("%s\n" % code)
                    code = 1
        return {"code": code & 0xFF, "stdout": stdout.getvalue(), "stderr": stderr.getvalue()}

    def _carry_out(self, words, call):
        import argparse

        parser = argparse.ArgumentParser(prog="petasos " + self._name, description=self._description)
        if self._setup is not None:
            self._setup(parser)
        if self._handler is not None:
            parser.set_defaults(func=self._handler)
        arguments = parser.parse_args(words)
        function = getattr(arguments, "func", None)
        if function is None:
            parser.print_help()
            return 1
        return call(function, arguments)
