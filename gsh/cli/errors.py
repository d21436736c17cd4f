"""Exit codes, and errors in one line: what is wrong, and what to do. Never a traceback, data or an access key.

GSH_DEBUG=1 shows the traceback as well.
"""

import copy
import errno
import os
import sys
import traceback
from enum import IntEnum
from typing import Any

import typer

from gsh.errors import Error, InfeasibleTarget, renamed_pointer, visible

__all__ = ["MEANINGS", "Code", "Refusal", "report"]


class Code(IntEnum):
    """The exit codes. ``MEANINGS`` has their sentences."""

    OTHER = 1
    INVALID = 2
    INFEASIBLE = 3
    BUDGET = 4
    ACCESS = 5
    UNREACHABLE = 6
    WAITING = 7
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    0: "it worked",
    Code.OTHER: "anything else; for `gsh verify` and `gsh audit --run`: something is not as it was stated",
    Code.INVALID: "a wrong option, file or table",
    Code.INFEASIBLE: "no mechanism meets the target",
    Code.BUDGET: "the release exceeds the remaining budget, or too little of it is left",
    Code.ACCESS: "no access key, or one that does not allow it",
    Code.UNREACHABLE: "the service cannot be reached, or is busy: try again later",
    Code.WAITING: "another access key must approve it first; then run the same command again",
    Code.INTERRUPTED: "Ctrl-C; nothing is half written",
    Code.TERMINATED: "SIGTERM; nothing is half written",
}

_OPTIONS = {
    "aggregates": "--mechanism",
    "caps": "--cap",
    "count_column": "--count",
    "users": "--count",
    "csv_types": "--type",
    "events": "EVENTS",
    "is_rounded": "--round",
    "key": "--key-file",
    "key_columns": "--keys",
    "about": "--about",
    "labels": "--label",
    "means": "--mean",
    "memory_limit": "--memory",
    "names": "--count",
    "overwrite": "--force",
    "privacy_unit": "--unit",
    "ratios": "--ratio",
    "share": "--survey-share",
    "survey": "--survey-share",
    "source": "--from",
    "sums": "--sum",
    "table": "TABLE",
    "tables": "--tables",
    "to": "--output",
    "types": "--type",
    "units": "--sum-unit",
    "url": "--service",
    "weights": "--weight",
}
_NAMED_ALIKE = (
    "blocks budget by c_u count counts delta description dialect epsilon expected_users keeps keys l1 l2 l_inf level "
    "mechanism mechanism_of most_sigma mu_0 noise once period preset public_keys reason releases retries round run "
    "runs salt scale seed service sigma survey_share survey_sigma tau tau_star threshold unprotected user"
)
_OPTIONS |= {name: f"--{name.replace('_', '-')}" for name in _NAMED_ALIKE.split()}
"""The option that has the parameter of an error."""
_OF_PATHS = {errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EEXIST}
_OF_A_SHORT_BUDGET = "gsh publish --releases 1 takes what is left, with more noise; nothing was released or charged"
_BUG = "this is a bug: please report it, with the output of the same command under GSH_DEBUG=1"


class Refusal(Exception):
    """An error of the command itself: what is wrong, and what to do about it."""

    def __init__(self, code: Code, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def report(error: BaseException) -> int:
    """Write the error in one line, and return its exit code."""
    code, message, hint = _explained(error)
    if os.environ.get("GSH_DEBUG") == "1":
        for each in "".join(traceback.format_exception(error)).splitlines():
            sys.stderr.write(f"{visible(each)}\n")
    line = " ".join(f"gsh: {message}{f' (hint: {hint})' if hint else ''}".split())
    sys.stderr.write(f"{visible(line)}\n")
    return int(code)


def _explained(error: BaseException) -> tuple[Code, str, str]:  # noqa: PLR0911 - a table of kinds
    match error:
        case Refusal():
            return error.code, error.message, error.hint
        case KeyboardInterrupt():
            return Code.INTERRUPTED, "interrupted; nothing was written", ""
        case _ if _of_service(error) is not None:
            return _of_service(error)  # type: ignore[return-value]
        case InfeasibleTarget():
            return Code.INFEASIBLE, _named(error), "change the target, or another parameter"
        case Error():
            return Code.INVALID, _named(error), error.hint or "--help lists all options"
        case OSError(filename=str() as name) if error.errno in _OF_PATHS:
            return Code.INVALID, f"{name}: {os.strerror(error.errno or 0)}", "check the path"
        case OSError() if error.errno is not None:
            return Code.OTHER, os.strerror(error.errno), ""
        case ModuleNotFoundError(name="duckdb" | "pyspark"):
            return Code.OTHER, str(error), ""
        case ModuleNotFoundError(name=str() as name):
            return Code.OTHER, f"the Python package {name} is not installed", "pip check lists what is missing"
        case MemoryError():
            return Code.OTHER, "not enough memory", "use a smaller table"
        case _ if isinstance(error, typer.BadParameter.__mro__[1]):  # all errors of usage
            return Code.INVALID, *_usage(error)
    return Code.OTHER, type(error).__name__, _BUG


def _of_service(error: BaseException) -> tuple[Code, str, str] | None:
    """An error of the service, if the client is loaded and raised it."""
    client = sys.modules.get("gsh.client.errors")
    if client is None or not isinstance(error, client.ServiceError):
        return None
    plain: Any = copy.copy(error)
    plain.hint = ""  # it is for Python
    for kind, code, hint in (
        (client.BudgetExceeded, Code.BUDGET, _OF_A_SHORT_BUDGET),
        (client.TooLittleLeft, Code.BUDGET, "--most-sigma accepts more noise; nothing was charged"),
        (client.AccessKeyRequired, Code.ACCESS, "set GSH_KEY or give --key-file"),
        (client.AwaitsApproval, Code.WAITING, "gsh approvals shows it; nothing was released, charged or changed"),
        (client.NoSecondKey, Code.ACCESS, "let another administrator decide"),
        (client.NotAllowed, Code.ACCESS, "ask the operator for an access key with this scope and budget"),
        (client.TooManyAttempts, Code.ACCESS, "wait, and check the access key and --once"),
        (client.Unreachable, Code.UNREACHABLE, "check --service; with the same --once it is charged once"),
        (client.Unavailable, Code.UNREACHABLE, "try again later; with the same --once it is charged once"),
        (client.Infeasible, Code.INFEASIBLE, "change the target, or another parameter"),
        (client.UnknownBudget, Code.INVALID, "gsh budgets lists them, and gsh budgets put makes one"),
        (client.UnknownApproval, Code.INVALID, "gsh approvals lists those that you may see"),
        (client.UnknownAccessKey, Code.INVALID, "gsh keys list shows those that you may see"),
        (client.UnknownRelease, Code.INVALID, "gsh releases lists those that you may see"),
        (client.IdempotencyKeyMissing, Code.INVALID, "add --once NAME: a release with this name is made once"),
        (client.IdempotencyKeyReused, Code.INVALID, "choose another --once, or gsh releases get the first one"),
        ((client.InternalError, client.ProtocolError, client.UnexpectedAnswer), Code.OTHER, "ask the operator"),
    ):
        if isinstance(error, kind):
            is_short = isinstance(error, client.BudgetExceeded)  # what a budget lacks is no fault of one option
            return code, str(plain) if is_short else _named(plain), hint
    return Code.INVALID, _named(plain), "--help lists all options"


def _named(error: Error) -> str:
    """The error with the option in place of the parameter, and then the place inside it, if there is one."""
    if not error.pointer:
        return str(error)
    first, *rest = renamed_pointer(
        error.pointer, ("/mechanism", ""), ("mechanism", ""), ("names/count", "count"), ("", "")
    ).split("/")
    option = "--events" if first == "events" and rest else _OPTIONS.get(first, first)
    rest = [] if error.hint else rest  # it has the name of the column
    place = "" if not rest else f" ({'/'.join([first, *rest])})" if option == "--mechanism" else f" {'/'.join(rest)}"
    return f"{option}{place}: {error.detail}" if option else error.detail


def _usage(error: BaseException) -> tuple[str, str]:
    """The words of typer, which begin with a capital and end with a full stop, and the help that has the answer."""
    context = getattr(error, "ctx", None)
    message = str(getattr(error, "format_message", lambda: error)()).strip().rstrip(".") or "a command is missing"
    hint = f"{context.command_path if context else 'gsh'} --help"
    if "extra argument" in message:
        hint = f"a pattern of files stands in quotes, such as 'day-*.parquet'; {hint}"
    return message[:1].lower() + message[1:], hint
