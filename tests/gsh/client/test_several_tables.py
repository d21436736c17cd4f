"""Several tables in one release, and public groups, through the client: as the service makes them, or refused."""

import io
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import httpx
import polars as pl
import pyarrow as pa
import pytest

import gsh
from gsh.certificate import certificate
from gsh.client import InvalidTable, Release, UnexpectedAnswer
from gsh.errors import InvalidGroups, InvalidParameter
from gsh.histogram.archives import write_archive
from gsh.histogram.conversion import write_rows
from gsh.histogram.file_formats import ZIP
from gsh.histogram.formats import write_table
from gsh.histogram.roles import Roles
from tests.app.process import Service
from tests.gsh.client.conftest import AT_ONCE
from tests.gsh.client.modes import MODES, Mode, outcome

pytestmark = pytest.mark.slow

URLS = gsh.Mechanism(c_u=3, tau=2, tau_star=1200, sigma=200)
COUNTRIES = gsh.PlainGaussian(c_u=1, sigma=150)
MECHANISMS = {"by_url": URLS, "by_country": COUNTRIES}
TABLES: dict[str, Any] = {
    "by_url": pa.table({"url": ["b", "a", "c"], "users": [10**6, 2 * 10**6, 3]}),
    "by_country": pl.DataFrame({"country": ["US", "FR"], "users": [3 * 10**6, 3]}),
}
LISTED = ["DE", "FR", "US"]
KEYS = {"by_url": ["url"], "by_country": ["country"]}
OPTIONS: dict[str, Any] = {"users": "users", "keys": KEYS, "public_keys": {"by_country": LISTED}}


def check(released: Release) -> None:
    assert list(released.tables) == ["by_url", "by_country"]
    assert released.tables["by_url"]["url"].to_pylist() == ["a", "b"]
    assert released.tables["by_country"]["country"].to_pylist() == LISTED
    assert released.tables["by_country"]["users"].to_pylist() == pytest.approx([0, 3, 3 * 10**6], abs=1500)
    assert dict(released.mechanisms) == MECHANISMS
    assert released.certificate.schema == "urn:gsh:certificate:3"


@pytest.mark.parametrize("mode", MODES)
def test_tables_are_released_once_and_loaded_again(
    running: Service, service: gsh.Client, budget: str, mode: Mode
) -> None:
    def release(client: Any) -> Any:
        return client.release(TABLES, MECHANISMS, **OPTIONS, budget=budget, once=budget)

    first, again = (outcome(mode, running.url, release, AT_ONCE) for _ in range(2))

    check(first)
    assert (first.is_replayed, first.released_at, first.once) == (False, None, budget)
    assert again.is_replayed
    assert again.released_at is not None
    record = service.releases[budget]
    for other in (again, record.load(), service.releases.load(budget), pickle.loads(pickle.dumps(first))):
        assert {name: table.equals(first.tables[name]) for name, table in other.tables.items()} == dict.fromkeys(
            TABLES, True
        )
        assert other.certificate == first.certificate
    assert service.budgets[budget].spent.releases == 1
    with pytest.raises(InvalidParameter, match="there are several"):
        _ = record.table
    csv = bytes(record.answer("csv", table="by_country")).decode()
    assert csv.startswith("country,users\nDE,")
    assert bytes(record.answer("zip"))[:2] == b"PK"
    assert "by_url (2 groups)" in repr(first)


def test_a_calibration_of_tables_states_its_point(service: gsh.Client) -> None:
    tables = {"by_url": gsh.Table(c_u=3), "by_country": gsh.Table(c_u=1, tau=None)}
    found = gsh.calibrate_tables(tables, epsilon=1, delta=1e-6)

    released = service.release(TABLES, found, **OPTIONS)

    assert (released.certificate.epsilon, dict(released.mechanisms)) == (1.0, dict(found.tables))
    assert released.certificate.delta <= 1e-6


@pytest.mark.parametrize("mode", MODES)
def test_a_dry_run_of_tables_draws_nothing(running: Service, service: gsh.Client, budget: str, mode: Mode) -> None:
    def dry_run(client: Any) -> Any:
        return client.dry_run(TABLES, MECHANISMS, **OPTIONS, budget=budget)

    found = outcome(mode, running.url, dry_run, AT_ONCE)

    assert [table.name for table in found.certificate.tables] == ["by_url", "by_country"]
    assert service.budgets[budget].spent.releases == 0


def test_streams_are_kept_for_a_retry_or_sent_once(service: gsh.Client, budget: str) -> None:
    def readers() -> dict[str, Any]:
        return {name: pa.table(table).to_reader() for name, table in TABLES.items()}

    check(service.release(readers(), MECHANISMS, **OPTIONS))
    check(service.release(readers(), MECHANISMS, **OPTIONS, budget=budget, once=budget))
    assert service.release(readers(), MECHANISMS, **OPTIONS, budget=budget, once=budget).is_replayed


def test_a_json_release_of_tables_is_loaded(running: Service, service: gsh.Client, budget: str) -> None:
    """Its archive has Parquet files. The client asks for Arrow streams, which it can check."""
    tables = [
        {
            "name": "a",
            "mechanism": {"c_u": 1, "sigma": 150},
            "groups": {"keys": ["x"], "counts": [5]},
            "public_keys": "posted",
        },
        {
            "name": "b",
            "mechanism": {"c_u": 1, "sigma": 150},
            "groups": {"keys": [7], "counts": [5]},
            "public_keys": [7, 8],
        },
    ]
    headers = {"idempotency-key": budget}
    made = httpx.post(f"{running.url}/release", json={"tables": tables, "budget": budget}, headers=headers)
    assert made.status_code == 200, made.text

    loaded = service.releases[budget].load()

    assert isinstance(loaded, Release)
    assert loaded.tables["b"]["key"].to_pylist() == [7, 8]
    assert loaded.tables["b"]["count"].to_pylist() == made.json()["tables"][1]["groups"]["counts"]


def test_one_table_of_public_groups(service: gsh.Client) -> None:
    options: dict[str, Any] = {"users": "users", "keys": ["country"]}
    released = service.release(TABLES["by_country"], COUNTRIES, **options, public_keys=LISTED)

    assert isinstance(released, Release)
    assert released.table["country"].to_pylist() == LISTED
    assert released.mechanism == COUNTRIES
    assert all(released.intervals().counts.low >= 0)
    assert released.total().counts.estimate == pytest.approx(sum(released.table["users"].to_pylist()))
    as_library = service.release(
        COUNTRIES, TABLES["by_country"], key_columns=["country"], count_column="users", public_keys="posted"
    )
    assert as_library["country"].to_pylist() == ["FR", "US"]
    groups = service.release(COUNTRIES, keys=[("FR", 1)], counts=[3], public_keys=[("DE", 2), ("FR", 1)])
    assert groups.keys == (("DE", 2), ("FR", 1))
    shown = service.dry_run(TABLES["by_country"], COUNTRIES, **options, public_keys=LISTED)
    assert shown.certificate.hazard == 0
    for given, pointer in (({"public_keys": ["US"]}, "keys"), ({}, "public_keys")):
        with pytest.raises(InvalidTable) as refused:
            service.release(TABLES["by_country"], COUNTRIES, **options, **given)
        assert refused.value.pointer == pointer


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a mechanism is missing": ({"mechanism": {"by_url": URLS}}, "mechanism"),
    "keys are missing": ({"keys": {"by_url": ["url"]}}, "keys"),
    "keys are a list": ({"keys": ["url"]}, "keys"),
    "users of an unknown table": ({"users": {"by_url": "users", "by_city": "users"}}, "users"),
    "public keys of an unknown table": ({"public_keys": {"by_city": LISTED}}, "public_keys"),
    "an unknown column": ({"keys": KEYS | {"by_country": ["city"]}}, "by_country"),
    "no list": ({"public_keys": None}, "public_keys/by_country"),
    "a group that is not listed": ({"public_keys": {"by_country": ["US"]}}, "keys/by_country"),
    "a list for secret groups": ({"public_keys": {"by_url": ["a"], "by_country": LISTED}}, "public_keys/by_url"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_the_parameter_and_the_table(service: gsh.Client, name: str) -> None:
    given, pointer = FAULTS[name]
    options = OPTIONS | given

    with pytest.raises((InvalidGroups, InvalidParameter)) as refused:
        service.release(TABLES, options.pop("mechanism", MECHANISMS), **options)

    assert pointer in refused.value.pointer


def stated() -> str:
    return certificate(MECHANISMS).to_json()


def archive(certified: str, **changes: Any) -> bytes:
    """An answer as the service would make it, with changes."""
    sink = io.BytesIO()
    rows = {
        "by_url": pa.table({"url": ["a"], "users": [5.0]}),
        "by_country": pa.table({"country": LISTED, "users": [0.5, 1.5, 2.5]}),
    }
    names = changes.get("names", {"by_url": "by_url", "by_country": "by_country"})

    def writer(name: str) -> Callable[[Any], None]:
        def write(file: Any) -> None:
            roles = Roles(tuple(KEYS[name]), "users", ())
            written = io.BytesIO()
            write_rows(rows[name], roles, "arrow", certified, written)
            stream = pa.ipc.open_stream(written.getvalue())
            kind = changes.get("kind", "arrow")
            write_table(kind, stream, changes.get("inside", certified), file, changes.get("said", name))

        return write

    write_archive(sink, {names[name]: ("arrow", writer(name)) for name in rows if name in names}, certified)
    return sink.getvalue()


def answered(body: bytes) -> Release:
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, headers={"content-type": ZIP}, content=body))
    with gsh.Client("http://a.org", retries=0, transport=transport) as client:
        return client.release(TABLES, MECHANISMS, **OPTIONS)


def packed(body: bytes, compression: int) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as source, zipfile.ZipFile(sink, "w", compression) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    return sink.getvalue()


def changed(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def test_an_archive_as_the_service_makes_it_is_read() -> None:
    found = answered(archive(stated()))

    assert found.tables["by_country"]["country"].to_pylist() == LISTED


HOSTILE: dict[str, Callable[[], bytes]] = {
    "another name": lambda: archive(stated(), names={"by_url": "by_url", "by_country": "by_city"}),
    "a table is missing": lambda: archive(stated(), names={"by_url": "by_url"}),
    "tables are exchanged": lambda: archive(stated(), names={"by_url": "by_country", "by_country": "by_url"}),
    "a table says another name": lambda: archive(stated(), said="by_url"),
    "a table has another certificate": lambda: archive(stated(), inside=stated()),
    "a certificate of one table": lambda: archive(certificate(URLS).to_json()),
    "a certificate of other tables": lambda: archive(certificate({"by_url": URLS}).to_json()),
    "no certificate": lambda: archive("{}"),
    "Parquet in disguise": lambda: archive(stated(), kind="parquet"),
    "compressed": lambda: packed(archive(stated()), zipfile.ZIP_DEFLATED),
    "stored by another program": lambda: packed(archive(stated()), zipfile.ZIP_STORED),
    "cut off": lambda: archive(stated())[:-2000],
    "no archive": lambda: b"PK\x03\x04",
    "empty": lambda: b"",
    "a changed byte": lambda: changed(archive(stated()), 700),
    "a size beyond the end": lambda: changed(archive(stated()), archive(stated()).index(b"\x01\0\x10\0") + 9),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_another_archive_is_refused(name: str) -> None:
    with pytest.raises(UnexpectedAnswer):
        answered(HOSTILE[name]())


def test_every_changed_byte_is_refused_or_harmless() -> None:
    """Up to the directory, of which nothing is read."""
    body = archive(stated())
    end = body.index(b"PK\x01\x02")
    for at in range(0, end, 13):
        try:
            answered(changed(body, at))
        except UnexpectedAnswer:
            continue
        # Versions, times and padding of a local header.
        assert not body[at : at + 1].isalpha()
