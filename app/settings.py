"""All settings, read from the environment (``GSH_…``). A test compares the documents' table with them."""

import re
import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["Settings", "settings_or_exit"]


_LEDGER = "ledger.sqlite3"
_LEDGER_OF_THE_IMAGE = "/var/lib/gsh/ledger.sqlite3"
_MOST_SECRET_BYTES = 64 * 1024


class Settings(BaseSettings):
    """One field per environment variable: ``GSH_`` and the field's name in capitals."""

    model_config = SettingsConfigDict(env_prefix="GSH_", frozen=True, extra="ignore")

    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    workers: int = Field(default=1, ge=1, le=256, description="worker processes")
    root_path: str = Field(default="", description="path prefix that a proxy strips")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="lowest level that is logged"
    )
    access_log: bool = Field(
        default=False, description="log a line per request: method, route, status and seconds (no seconds for releases)"
    )
    shutdown_seconds: int = Field(default=10, ge=0, description="how long requests may finish after a stop signal")
    max_connections: int = Field(
        default=1000,
        ge=1,
        description="open connections per worker; one more closes the one that is silent longest",
    )
    max_head_bytes: int = Field(default=64 * 1024, ge=1024, description="largest URL and headers; more is 431")
    head_seconds: float = Field(default=10, gt=0, description="how long URL and headers may take to arrive; else 408")
    body_seconds: float = Field(
        default=20, gt=0, description="how long a body may take to arrive, plus a second for each 16 KiB; else 408"
    )
    max_body_bytes: int = Field(default=2 * 1024**2, ge=1024, description="largest request body; more is 413")
    max_release_bytes: int = Field(
        default=64 * 1024**2,
        ge=1024,
        description="largest body of `/release`, which takes groups as JSON; more is 413; parsed, it may take four "
        "times as much memory",
    )
    max_intervals_bytes: int = Field(
        default=16 * 1024**2,
        ge=1024,
        description="largest body of `/intervals`; more is 413; parsed, it may take four times as much memory",
    )
    max_verify_bytes: int = Field(
        default=64 * 1024**2,
        ge=1024,
        description="largest form of `/verify`, which is public; more is 413; it may take 48 times as much memory",
    )
    max_release_groups: int = Field(
        default=200_000,
        ge=1,
        description="most groups in one `/release` or `/intervals`; more is 413; larger tables go to `/release/table`",
    )
    max_table_bytes: int = Field(
        default=4 * 1024**3, ge=1024, description="largest upload to `/release/table`, and largest table once read"
    )
    max_table_groups: int = Field(default=20_000_000, ge=1, lt=2**31, description="most groups in one `/release/table`")
    max_curve_points: int = Field(
        default=10_000, ge=1, le=10_000, description="most ε, δ or σ in one request; more is 422"
    )
    max_sizes: int = Field(default=100_000, ge=1, le=100_000, description="most sizes in one `/utility`; more is 422")
    max_theorem_evaluations: int = Field(
        default=10**7, ge=1, description='most C_u × points with `"theorem": true`; more is 422'
    )
    cache_size: int = Field(
        default=65_536, ge=0, description="curve points in the cache; the least recently used are dropped"
    )
    pool_processes: int = Field(
        default=1,
        ge=1,
        le=64,
        description="worker processes in each of the worker pools for accounting, releases, and stored answers",
    )
    heavy_threads: int | None = Field(
        default=None, ge=1, le=64, description="the old name of `GSH_POOL_PROCESSES`; still read"
    )
    heavy_queue: int = Field(
        default=16, ge=0, description="heavy requests that may wait in each worker pool; more is 503"
    )
    heavy_seconds: float = Field(
        default=60,
        gt=0,
        allow_inf_nan=False,
        description="longest time for heavy accounting, waiting included; then 503",
    )
    release_seconds: float = Field(
        default=600,
        gt=0,
        allow_inf_nan=False,
        description="longest time for a release, after its body has arrived; then 503",
    )
    max_work: int = Field(
        default=20_000,
        ge=1,
        description="most work for accounting, a budget or a release, in estimated milliseconds; more is 422",
    )
    ledger_file: str = Field(default="", description="file with the value of `GSH_LEDGER`, which may have a password")
    ledger: str = Field(
        default=_LEDGER,
        min_length=1,
        validate_default=True,
        description="the ledger of budgets: a file, or a `postgresql://` URL",
    )
    answer_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="how many days the answers of releases are kept; charges and certificates stay; unset: for ever",
    )
    ledger_secret_file: str = Field(default="", description="file with the value of `GSH_LEDGER_SECRET`")
    ledger_secret: SecretStr = Field(
        default=SecretStr(""),
        validate_default=True,
        description="at least 32 characters, for keyed hashes; if empty, it is in a file next to the SQLite database",
    )
    admin_key_file: str = Field(default="", description="file with the value of `GSH_ADMIN_KEY`")
    admin_key: SecretStr = Field(
        default=SecretStr(""),
        validate_default=True,
        description="at least 32 characters: an access key with all scopes, which is added when the service starts",
    )
    open_access: bool = Field(
        default=False,
        description="until an access key is made: serve releases and budgets to everyone, not only to this machine",
    )
    account_keys: bool = Field(
        default=False, description="accounting also needs an access key, with the scope `account`"
    )

    require_budget: bool = Field(
        default=False, description="refuse a release that no budget pays for (422), except to access keys with `admin`"
    )
    least_sigma: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="least σ of a release or charge; less is 422, except to access keys with `admin`",
    )
    most_epsilon: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="the ε at which `GSH_MOST_DELTA` bounds each release or charge; set both or neither",
    )
    most_delta: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        validate_default=True,
        description="most δ of a release or charge at that ε; more is 422, except to access keys with `admin`",
    )

    signing_key_file: str = Field(
        default="",
        description="file with the Ed25519 key that signs certificates (PKCS#8, PEM); if empty, it is made next to the "
        "SQLite database, and a ledger on a server signs nothing",
    )
    issuer: str = Field(
        default="", max_length=200, description="who signs, in words for people: the name of the organisation"
    )
    public_url: str = Field(
        default="",
        max_length=1000,
        description="the address of this service for everyone, such as `https://gsh.example.org`: it is published with "
        "the signing keys",
    )

    budgets_in_metrics: bool = Field(
        default=False,
        description="`/metrics`, which everyone may read, has each budget by its name; without it, only the largest "
        "used share and the fewest days left of all",
    )
    heads_file: str = Field(
        default="",
        description="file to which changed heads of budgets are appended each hour; if empty, they are log lines",
    )

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, given: dict[str, Any]) -> dict[str, Any]:
        old = given.get("heavy_threads")
        return given if old is None else {"pool_processes": old} | given

    @field_validator("heavy_threads")
    @classmethod
    def _same_as_the_new_name(cls, old: int | None, others: ValidationInfo) -> int | None:
        if old is not None and others.data.get("pool_processes", old) != old:
            raise ValueError("is the old name of GSH_POOL_PROCESSES, which has another value")
        return old

    @field_validator("most_delta")
    @classmethod
    def _both_or_neither(cls, delta: float | None, others: ValidationInfo) -> float | None:
        if "most_epsilon" in others.data and (others.data["most_epsilon"] is None) != (delta is None):
            raise ValueError("must be set together with GSH_MOST_EPSILON")
        return delta

    @field_validator("ledger", "ledger_secret", "admin_key", mode="before")
    @classmethod
    def _from_file(cls, given: object, others: ValidationInfo) -> object:
        """A secret may be in a file, which other processes of the machine cannot read. A last line end is cut off."""
        variable, place = f"GSH_{others.field_name}_FILE".upper(), others.data.get(f"{others.field_name}_file", "")
        if not place:
            return given
        if given not in ("", SecretStr(""), _LEDGER, _LEDGER_OF_THE_IMAGE):
            raise ValueError(f"must not be set together with {variable}")
        try:
            with Path(place).open("rb") as file:
                content = file.read(_MOST_SECRET_BYTES + 1)
            found = content.decode().rstrip("\r\n")
        except (OSError, ValueError) as error:
            reason = (isinstance(error, OSError) and error.strerror) or "it is not text"
            raise ValueError(f"cannot be read from {variable}: {reason}") from None
        if len(content) > _MOST_SECRET_BYTES:
            raise ValueError(f"must have at most {_MOST_SECRET_BYTES} bytes in {variable}")
        if not found:
            raise ValueError(f"must not be empty in {variable}")
        return found

    @field_validator("ledger_secret", "admin_key")
    @classmethod
    def _long_enough(cls, secret: SecretStr) -> SecretStr:
        text = secret.get_secret_value()
        if text and (len(text) < 32 or text.isspace()):
            raise ValueError("must have at least 32 characters")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("must be text in UTF-8") from None
        return secret

    @field_validator("admin_key")
    @classmethod
    def _fits_a_header(cls, key: SecretStr, others: ValidationInfo) -> SecretStr:
        if not re.fullmatch("[!-~]{0,512}", key.get_secret_value()):
            raise ValueError("must have at most 512 characters, all of them printable ASCII, and no spaces")
        if key.get_secret_value() and key == others.data.get("ledger_secret"):
            raise ValueError("must not be the ledger's secret, which no request may carry")
        return key


def settings_or_exit() -> Settings:
    """The settings of a program. A wrong one ends the program with a line that names it, without its value."""
    try:
        return Settings()
    except ValidationError as error:
        for each in error.errors(include_input=False):
            sys.stderr.write(f"GSH_{'_'.join(map(str, each['loc'])).upper()}: {each['msg']}\n")
        raise SystemExit(2) from None
