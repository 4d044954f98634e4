"""The command line: parse, call, print, exit code.

Exit codes: 0 done; 1 not done, or not all of it; 2 wrong usage; 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hyce.cli import catalogue, documents, evaluate, questions, setup
from hyce.cli.terminal import Terminal
from hyce.config import SITE_FILE, Config, expanded, load
from hyce.errors import HyceError, UsageError
from hyce.presets import PRESETS


class _Parser(argparse.ArgumentParser):
    """Errors are one line and exit with 2, as everywhere in hyce; options may stand anywhere."""

    _mixing = False

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse does it, but `run ID --json name=value` and `index A --quiet B` are understood too."""
        parsed, rest = super().parse_known_args(args, namespace)
        if not rest or self._mixing or self._subparsers is not None:
            return parsed, rest
        if "--" not in (args or ()):
            self._mixing = True
            try:
                parsed, rest = self.parse_known_intermixed_args(args, namespace)
            finally:
                self._mixing = False
        if rest:
            quote = hasattr(parsed, "question") and not any(word.startswith("-") for word in rest)
            hint = "put the question in quotes" if quote else f"see `{self.prog} --help`"
            raise UsageError(f"unexpected: {' '.join(rest)}; {hint}")
        return parsed, rest


def build_parser() -> argparse.ArgumentParser:
    """The whole command line. docs/cli.md is generated from it."""
    parser = _Parser(
        prog="hyce",
        description="Answers questions about your HPC cluster from its documentation and from live commands.",
        epilog='Start with `hyce init`, `hyce models pull`, `hyce index FOLDER` and `hyce ask "QUESTION"`. '
        "`hyce COMMAND --help` tells more about a command.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    common = _common()
    for module in (questions, documents, catalogue, evaluate, setup):
        module.register(subparsers, common)
    return parser


def _common() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("common options")
    group.add_argument(
        "--config", type=Path, metavar="FILE", help="settings file to use instead of ~/.config/hyce/hyce.toml"
    )
    group.add_argument(
        "--index", metavar="DIR", help="folder of the index (default: ~/.local/share/hyce/index)"
    )
    group.add_argument(
        "--preset", choices=list(PRESETS), help="a named set of settings that stands above those of the files"
    )
    group.add_argument("--json", action="store_true", help="print JSON on stdout, messages on stderr")
    group.add_argument("--quiet", action="store_true", help="show no progress and no hints")
    group.add_argument("--verbose", action="store_true", help="show also what is usually left out")
    return common


def main(argv: Sequence[str] | None = None, site_file: Path = SITE_FILE) -> int:
    """Run one command and return its exit code. `site_file` is for tests."""
    # An orderly end of the job or session is an interruption like Ctrl-C: nothing is left half-written.
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        # A terminal that is closed, too: what runs has a session of its own, and would run on without limit.
        signal.signal(signal.SIGHUP, _interrupt)
    # Before numpy is loaded: starting its threads, and waiting for them on a busy machine, takes longer than
    # one question's few products of matrices. The embedding model has threads of its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = argparse.Namespace(json=False, quiet=False, verbose=False)
    terminal = Terminal.plain()
    try:
        parser = build_parser()
        arguments = parser.parse_args(argv, arguments)
        if arguments.version:
            from importlib.metadata import version

            print(f"hyce {version('hyce')}")
            return 0
        if arguments.command is None:
            parser.print_help(sys.stderr)
            return 2
        terminal = Terminal.for_arguments(arguments)
        config = _load(arguments, site_file)
        arguments.load = partial(_load, arguments, site_file)
        for notice in config.notices:
            terminal.warn(notice)
        code = int(arguments.call(arguments, config, terminal))
        # Now rather than at exit, where nobody could say any more that it failed.
        sys.stdout.flush()
        return code
    except HyceError as error:
        terminal.error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        terminal.error("interrupted")
        return 130
    except BrokenPipeError:
        # Nobody reads any more, as in `hyce search ... | head`.
        _close_stdout()
        return 1
    except OSError as error:
        terminal.error(
            f"{error.filename or 'the output'}: {error.strerror or error}; mend that and try again"
        )
        _close_stdout()
        return 1


def _close_stdout() -> None:
    """Keep the interpreter from complaining at exit about what can't be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


def _load(
    arguments: argparse.Namespace, site_file: Path, above: tuple[str, Mapping[str, Any]] | None = None
) -> Config:
    """The settings; above: as config.load has them, for what compares several."""
    overrides: dict[str, str] = {}
    if getattr(arguments, "writes_settings", False):
        # The file that it names is the one that it makes.
        return load(None, overrides, site_file=site_file)
    if arguments.preset:
        overrides["preset"] = arguments.preset
    if arguments.index:
        overrides["index.path"] = str(expanded(arguments.index).absolute())
    return load(arguments.config, overrides, site_file=site_file, above=above)


if __name__ == "__main__":
    sys.exit(main())
