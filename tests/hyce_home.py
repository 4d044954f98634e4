"""hyce's command line with a data, cache and settings folder of its own, in this process or in another."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from hyce.cli import main

KESTREL = Path(__file__).parent.parent / "examples" / "kestrel"
NO_SITE = Path("/nonexistent/hyce.toml")

_START = (
    "import sys; from pathlib import Path; from hyce.cli import main; "
    "sys.exit(main(sys.argv[2:], site_file=Path(sys.argv[1])))"
)


@dataclass(frozen=True)
class Result:
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def fails(result: Result, *words: str, code: int = 1) -> Result:
    """The result, checked to be one clear line on stderr with these words, and nothing on stdout."""
    lines = [line for line in result.err.splitlines() if line.startswith("hyce: ")]
    assert result.code == code, result
    assert len(lines) == 1, result.err
    assert len(lines[0]) < 400
    for word in words:
        assert word in lines[0], lines[0]
    assert result.out == ""
    return result


@dataclass(frozen=True)
class Home:
    """Where a user's files are."""

    folder: Path
    models: Path
    site_file: Path = NO_SITE

    @property
    def index(self) -> Path:
        return self.folder / "data" / "hyce" / "index"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HYCE_", "XDG_")) and not name.lower().endswith("_proxy")
        }
        folders = {
            f"XDG_{kind.upper()}_HOME": str(self.folder / kind)
            for kind in ("data", "cache", "config", "state")
        }
        return kept | folders | dict(more or {})

    def settings(self, settings: Mapping[str, Any] | None = None) -> Path:
        """A settings file with these, the model, and a policy under which commands run as root too, and as
        often as tests that share a home want them to."""
        policy = {"policy.root": True, "policy.rate_limit": 0}
        values = {"model.folder": str(self.models)} | policy | dict(settings or {})
        sections: dict[str, list[str]] = {}
        for name, value in values.items():
            section, _, key = name.partition(".")
            sections.setdefault(section, []).append(f"{key} = {json.dumps(value)}")
        text = "".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in sections.items())
        file = self.folder / f"hyce-{abs(hash(text))}.toml"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        return file

    def arguments(self, arguments: Sequence[str], settings: Mapping[str, Any] | None) -> list[str]:
        if "--config" in arguments or "--version" in arguments or not arguments:
            return list(arguments)
        end = arguments.index("--") if "--" in arguments else len(arguments)
        return [*arguments[:end], "--config", str(self.settings(settings)), *arguments[end:]]

    def hyce(
        self,
        *arguments: str,
        settings: Mapping[str, Any] | None = None,
        stdin: str | bytes = b"",
        environ: Mapping[str, str] | None = None,
    ) -> Result:
        """One call in this process."""
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "environ", self.environment(environ))
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(self.arguments(arguments, settings), site_file=self.site_file)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        texts = []
        for stream in (out, err):
            stream.flush()
            assert isinstance(stream.buffer, io.BytesIO)
            texts.append(stream.buffer.getvalue().decode())
        return Result(code, *texts)

    def command(self, *arguments: str, settings: Mapping[str, Any] | None = None) -> list[str]:
        """The command line of a process of its own."""
        return [sys.executable, "-c", _START, str(self.site_file), *self.arguments(arguments, settings)]

    def start(
        self,
        *arguments: str,
        settings: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        **options: Any,
    ) -> subprocess.Popen[bytes]:
        """A process of its own, still running."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = self.command(*arguments, settings=settings)
        environment = self.environment(environ)
        process = subprocess.Popen(command, env=environment, **(streams | options))
        return cast("subprocess.Popen[bytes]", process)

    def spawn(
        self,
        *arguments: str,
        settings: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
        stdin: bytes = b"",
        **options: Any,
    ) -> Result:
        """One call in a process of its own; `before` is what starts it, such as unshare."""
        done = subprocess.run(
            [*before, *self.command(*arguments, settings=settings)],
            env=self.environment(environ),
            input=stdin,
            capture_output=True,
            check=False,
            timeout=120,
            **options,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Result(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode())


def wait_for(happened: Callable[[], bool], seconds: float = 60) -> None:
    """Return when it has happened."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it didn't happen"
        time.sleep(0.01)
