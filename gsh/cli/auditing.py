"""gsh audit: what a sparse histogram costs that another engine makes, and whether a program is that engine."""

import shlex
import subprocess
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gsh.cli import options
from gsh.cli.errors import Code, Refusal
from gsh.cli.output import AsJson, Sheet, note, number, show

if TYPE_CHECKING:
    import pyarrow as pa

    from gsh.library.auditing import Audit
    from gsh.library.engines import EnginePrivacy

__all__ = ["commands"]

commands = typer.Typer()

Noise = Literal["gaussian", "rounded-gaussian", "discrete-gaussian", "laplace", "rounded-laplace", "geometric"]


@commands.command(epilog="Example:  gsh audit --preset opendp-laplace --scale 10 --c-u 5 --threshold 150 --epsilon 0.5")
def audit(
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="TOOL", help="A tool that has this engine; --list shows them.")
    ] = None,
    noise: Annotated[
        Noise | None,
        typer.Option(
            "--noise", help="The noise on each count; rounded-… if it is rounded to integers before the test."
        ),
    ] = None,
    scale: Annotated[
        float | None, typer.Option("--scale", help="σ of Gaussian noise, b of Laplace and geometric noise.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="The threshold that a noisy count is compared with.")
    ] = None,
    keeps: Annotated[
        Literal[">=", ">"] | None, typer.Option("--keeps", help="Whether a noisy count equal to it is kept.")
    ] = None,
    c_u: options.C_U = None,
    tau: options.Tau = None,
    l_inf: Annotated[
        int | None, typer.Option("--l-inf", help="The most rows of a user in one group, if rows are counted.")
    ] = None,
    l1: Annotated[int | None, typer.Option("--l1", help="The most rows of a user in all groups together.")] = None,
    l2: Annotated[float | None, typer.Option("--l2", help="The most of the Euclidean norm of a user's rows.")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="The seed of the noise. It is refused: there is no privacy with it.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="ε at which to compute δ.")] = None,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="δ at which to compute the smallest ε; with --epsilon, what the tool was given."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="COMMAND",
            help="Check a program: it reads events as CSV (user,key), and writes what it publishes as CSV (key,count).",
        ),
    ] = None,
    blocks: Annotated[
        int, typer.Option("--blocks", help="With --run: how many copies of the neighbouring tables a run has.")
    ] = 2000,
    runs: Annotated[int, typer.Option("--runs", help="With --run: how often the program runs.")] = 2,
    bounded: Annotated[
        bool, typer.Option("--bounded", help="With --run: the program expects events that are bounded already.")
    ] = False,
    lists: Annotated[bool, typer.Option("--list", help="List the tools with their sources, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """What a sparse histogram costs that another engine makes: certified (ε, δ) next to what the tool claims.

    With --run, a program is run on neighbouring tables: does it show more than is certified for such an engine? The
    proof, what must hold of the engine, and what a run can find are in docs/math/engines.md.
    """
    if lists:
        _show_tools(as_json=as_json)
        return
    if c_u is None:
        raise Refusal(Code.INVALID, "--c-u: is missing", "the most groups in which one user is counted")
    import gsh  # noqa: PLC0415 - loads numpy

    if run is not None:
        _check_alone(preset=preset, l_inf=l_inf, l1=l1, l2=l2, seed=seed, delta=delta)
        _show_audit(
            gsh.audit(
                _Program(run),
                noise=_needed("--noise", noise),
                scale=_needed("--scale", scale),
                c_u=c_u,
                threshold=_needed("--threshold", threshold),
                tau=1 if tau is None else tau,
                keeps=keeps or ">=",
                epsilon=epsilon,
                blocks=blocks,
                runs=runs,
                is_bounded=bounded,
            ),
            as_json=as_json,
        )
        return
    found = gsh.engine(
        preset=preset,
        noise=noise,
        scale=scale,
        c_u=c_u,
        threshold=threshold,
        tau=1 if tau is None else tau,
        keeps=keeps,
        l_inf=l_inf,
        l1=l1,
        l2=l2,
        seed=seed,
        epsilon=epsilon,
        delta=delta,
    )
    _show(found, as_json=as_json)


def _show(found: "EnginePrivacy", *, as_json: bool) -> None:
    from gsh.wire import mechanism_to_json  # noqa: PLC0415

    document: dict[str, Any] = asdict(found)
    document["mechanism"] = None if found.mechanism is None else mechanism_to_json(found.mechanism)
    document["exact"] = document.pop("is_exact")
    rows = [
        ["noise", f"{found.noise}, scale {number(found.scale, 8)}"],
        ["kept", "by the tool's rule" if found.threshold is None else f"{found.keeps} {number(found.threshold, 12)}"],
        ["epsilon", number(found.epsilon)],
        ["delta", f"{number(found.delta)}, {'exact' if found.is_exact else 'an upper bound'}"],
        *([f"claimed by {each.tool} {each.version}", number(each.delta)] for each in found.claims),
        ["delta_infinite", number(found.delta_infinite)],
        ["delta_noise", number(found.delta_noise)],
    ]
    show(document, Sheet(("certified", ""), rows), as_json=as_json)
    for each in found.claims:
        if each.delta < found.delta:
            note(f"gsh: {each.tool} claims {each.delta / found.delta:.2f} of the certified delta")
    if not as_json:
        note(f"gsh: {found.method}")


def _show_tools(*, as_json: bool) -> None:
    from gsh.accounting.engines.presets import PRESETS  # noqa: PLC0415 - loads flint

    tools = [
        {name: getattr(each, name) for name in ("name", "tool", "version", "noise", "keeps", "note", "source")}
        | {"given": "epsilon, delta" if each.chosen else "scale, threshold"}
        for each in PRESETS.values()
    ]
    rows = [
        [each["name"], f"{each['tool']} {each['version']}", each["noise"] or "keys alone", each["keeps"], each["given"]]
        for each in tools
    ]
    show(tools, Sheet(("preset", "tool", "noise", "keeps", "given"), rows), as_json=as_json)


def _check_alone(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise Refusal(Code.INVALID, f"{option}: must be omitted with --run", "the program is what is checked")


def _needed(option: str, value: Any) -> Any:
    if value is None:
        raise Refusal(Code.INVALID, f"{option}: is missing", "--run compares the program with an engine as described")
    return value


class _Program:
    """A program that reads events and writes what it publishes, as a function."""

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError:
            self._words = []
        if not self._words:
            raise Refusal(Code.INVALID, "--run: must be a command", "such as --run 'python my_engine.py'")

    def __call__(self, events: "pa.Table") -> "pa.Table":
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import csv  # noqa: PLC0415

        written = pa.BufferOutputStream()
        csv.write_csv(events, written)
        try:
            done = subprocess.run(  # noqa: S603 - the command of the person who calls this
                self._words, input=written.getvalue().to_pybytes(), stdout=subprocess.PIPE, check=True
            )
        except subprocess.CalledProcessError as error:
            detail = f"--run: the program ended with {error.returncode}"
            raise Refusal(Code.OTHER, detail, "its own error is above, if it wrote one") from None
        except FileNotFoundError:
            raise Refusal(Code.INVALID, f"--run: there is no program {self._words[0]}", "check the path") from None
        kinds = {"key": pa.string(), "count": pa.float64()}
        options = csv.ConvertOptions(column_types=kinds, include_columns=list(kinds))
        try:
            return csv.read_csv(pa.py_buffer(done.stdout), convert_options=options)
        except (pa.ArrowInvalid, KeyError):
            hint = "such as: key,count, and then a line per published group"
            raise Refusal(Code.INVALID, "--run: must write CSV with the columns key and count", hint) from None


def _show_audit(found: "Audit", *, as_json: bool) -> None:
    """The evidence and the faults. Faults are exit code 1."""
    rows = [
        [
            number(each.epsilon),
            f"{each.groups_at_tau} of {each.groups}",
            each.direction,
            number(max(each.shown, 0.0), 4),
            number(each.certified, 4),
        ]
        for each in found.evidence
    ]
    columns = ("epsilon", "groups at tau", "a user is", "delta at least", "certified")
    document = asdict(found) | {"is_as_stated": found.is_as_stated}
    show(document, Sheet(columns, rows, frozenset({0, 3, 4})), as_json=as_json)
    if found.faults:
        listed = "; ".join(f"{each.rule}: {each.detail}" for each in found.faults)
        raise Refusal(Code.OTHER, f"the program is not the engine as described: {listed}")
    note(f"gsh: no fault was found in {found.blocks} pairs of neighbours; this is no proof that there is none")
