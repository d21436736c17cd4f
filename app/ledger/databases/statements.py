"""Every SQL statement of the ledger, for both databases. The databases differ in a few words, which are filled in.

Placeholders are written %s; SQLite's driver calls them ?.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["MIGRATIONS", "POSTGRES", "SQLITE", "Dialect", "Statements"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words in which a database differs from standard SQL."""

    placeholder: str
    bytes: str
    double: str
    lock_row: str
    clustered: str
    """Rows in the order of their primary key, without a second tree: a charge then touches half as many pages."""

    def adapt(self, statement: str, **further: str) -> str:
        words = {"bytes": self.bytes, "double": self.double, "lock_row": self.lock_row, "budget": _BUDGET}
        words |= {"clustered": self.clustered, "release": _RELEASE, "listed": _LISTED, "access_key": _ACCESS_KEY}
        words |= {"history": f"{_HISTORY} FROM entries", "entry": _ENTRY, "replaced": _REPLACED}
        words |= {f"values_{count}": ", ".join(["%s"] * count) for count in (14, 15, 24)}
        return statement.format_map(words | further).replace("%s", self.placeholder)


SQLITE = Dialect(placeholder="?", bytes="BLOB", double="REAL", lock_row="", clustered="WITHOUT ROWID")
POSTGRES = Dialect(placeholder="%s", bytes="BYTEA", double="DOUBLE PRECISION", lock_row="FOR UPDATE", clustered="")

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE ledger (name TEXT PRIMARY KEY, value TEXT NOT NULL)""",
        """CREATE TABLE budgets (
            id TEXT PRIMARY KEY, epsilon {double} NOT NULL, delta {double} NOT NULL, description TEXT NOT NULL,
            s TEXT NOT NULL, d TEXT NOT NULL, charges BIGINT NOT NULL, only_release TEXT,
            entries BIGINT NOT NULL, head TEXT NOT NULL)""",
        """CREATE TABLE entries (
            budget TEXT NOT NULL REFERENCES budgets (id), number BIGINT NOT NULL, kind TEXT NOT NULL, at TEXT NOT NULL,
            payload TEXT NOT NULL, hash TEXT NOT NULL, s {double}, d {double},
            key TEXT, request TEXT, media_type TEXT, size BIGINT, content {bytes},
            PRIMARY KEY (budget, number)) {clustered}""",
        """CREATE UNIQUE INDEX entries_by_key ON entries (key)""",
        """CREATE TABLE answer_parts (
            key TEXT NOT NULL REFERENCES entries (key), part BIGINT NOT NULL, content {bytes} NOT NULL,
            PRIMARY KEY (key, part))""",
    ),
    (
        """CREATE TABLE access_keys (
            id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL, budgets TEXT NOT NULL,
            note TEXT NOT NULL, made_at TEXT NOT NULL, revoked_at TEXT)""",
    ),
    (
        """ALTER TABLE budgets ADD COLUMN proportion_s {double}""",
        """ALTER TABLE budgets ADD COLUMN proportion_d {double}""",
        """UPDATE budgets SET
            proportion_s = (SELECT s FROM entries WHERE budget = id AND kind = 'charge' ORDER BY number LIMIT 1),
            proportion_d = (SELECT d FROM entries WHERE budget = id AND kind = 'charge' ORDER BY number LIMIT 1)""",
    ),
    (
        """ALTER TABLE budgets ADD COLUMN hull_s TEXT""",
        """ALTER TABLE budgets ADD COLUMN hull_d TEXT""",
    ),
    (
        """ALTER TABLE entries ADD COLUMN client TEXT""",
        """CREATE TABLE comparisons (
            key TEXT PRIMARY KEY REFERENCES entries (key), by_owner {double} NOT NULL, by_others {double} NOT NULL)""",
    ),
    (
        """DROP TABLE comparisons""",
        """CREATE TABLE comparisons (key TEXT PRIMARY KEY REFERENCES entries (key), until {double} NOT NULL)""",
        """ALTER TABLE budgets ADD COLUMN privacy_unit TEXT NOT NULL DEFAULT 'user'""",
        """ALTER TABLE budgets ADD COLUMN period TEXT""",
        """CREATE TABLE releases (
            key TEXT PRIMARY KEY REFERENCES entries (key), budget TEXT NOT NULL, number BIGINT NOT NULL,
            at TEXT NOT NULL, state TEXT NOT NULL, release_id TEXT, description TEXT NOT NULL, labels TEXT NOT NULL,
            certificate TEXT, provenance TEXT, layout TEXT, content_hash TEXT, answer TEXT, answer_key {bytes},
            committed TEXT, erased_at TEXT, erasure TEXT)""",
        """CREATE INDEX releases_by_time ON releases (at, key)""",
        """CREATE INDEX releases_by_budget ON releases (budget, at, key)""",
        """CREATE INDEX releases_by_id ON releases (release_id)""",
        """CREATE TABLE seeds (key TEXT PRIMARY KEY REFERENCES releases (key), nonce {bytes} NOT NULL)""",
        """CREATE TABLE staged (answer TEXT PRIMARY KEY, at TEXT NOT NULL)""",
        """CREATE TABLE parts (
            answer TEXT NOT NULL, part BIGINT NOT NULL, content {bytes} NOT NULL, PRIMARY KEY (answer, part))""",
        """INSERT INTO parts (answer, part, content) SELECT key, part, content FROM answer_parts""",
        """DROP TABLE answer_parts""",
        """INSERT INTO releases (key, budget, number, at, state, description, labels, answer)
            SELECT key, budget, number, at, 'made', '', '[]', CASE WHEN content IS NULL THEN key END
            FROM entries WHERE kind = 'charge' AND key IS NOT NULL""",
    ),
    (
        """ALTER TABLE access_keys ADD COLUMN expires_at TEXT""",
        """ALTER TABLE access_keys ADD COLUMN replaces TEXT""",
    ),
    (
        """ALTER TABLE releases ADD COLUMN version BIGINT NOT NULL DEFAULT 1""",
        """ALTER TABLE releases ADD COLUMN seal TEXT""",
        """CREATE TABLE answer_keys (
            answer TEXT PRIMARY KEY, key {bytes} NOT NULL, facts {bytes} NOT NULL) {clustered}""",
    ),
    (
        """ALTER TABLE budgets ADD COLUMN ray_s TEXT""",
        """ALTER TABLE budgets ADD COLUMN ray_d TEXT""",
    ),
    (
        """ALTER TABLE budgets ADD COLUMN parent TEXT REFERENCES budgets (id)""",
        """CREATE INDEX budgets_by_parent ON budgets (parent)""",
    ),
    (
        """ALTER TABLE budgets ADD COLUMN renews TEXT""",
        """ALTER TABLE budgets ADD COLUMN closes_after BIGINT""",
        """ALTER TABLE budgets ADD COLUMN period_of TEXT REFERENCES budgets (id)""",
        """CREATE INDEX budgets_by_renewed ON budgets (period_of)""",
    ),
    ("""ALTER TABLE budgets ADD COLUMN most_sigma {double}""",),
    (
        """CREATE TABLE access_entries (
            number BIGINT PRIMARY KEY, kind TEXT NOT NULL, at TEXT NOT NULL, payload TEXT NOT NULL,
            hash TEXT NOT NULL)""",
    ),
    (
        """ALTER TABLE budgets ADD COLUMN approval TEXT""",
        """CREATE TABLE approvals (
            id TEXT PRIMARY KEY, kind TEXT NOT NULL, budget TEXT NOT NULL REFERENCES budgets (id),
            number BIGINT NOT NULL, key TEXT UNIQUE, state TEXT NOT NULL, decision BIGINT)""",
        """CREATE INDEX approvals_by_budget ON approvals (budget)""",
        """DROP TABLE comparisons""",
        """CREATE TABLE comparisons (key TEXT PRIMARY KEY, until {double} NOT NULL)""",
    ),
)
"""The statements from each version of the schema to the next. Released ones are never edited, only new ones added."""

_BUDGET = (
    "id, epsilon, delta, proportion_s, proportion_d, description, s, d, charges, only_release, entries, head, "
    "hull_s, hull_d, privacy_unit, period, ray_s, ray_d, parent, renews, closes_after, period_of, most_sigma, approval"
)
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _BUDGET.split(", ")[1:])
_HISTORY = "budget, number, kind, at, payload, hash"
_ENTRY = f"{_HISTORY}, s, d, key, request, client, media_type, size, content"
_RELEASE = (
    "releases.key, releases.budget, releases.number, releases.at, state, release_id, description, labels, certificate, "
    "provenance, layout, content_hash, releases.answer, answer_key, committed, erased_at, erasure, "
    "entries.hash, payload, entries.s, entries.d, media_type, size, entries.client, entries.request, "
    "version, seal, answer_keys.key, facts "
    "FROM releases JOIN entries ON entries.key = releases.key "
    "LEFT JOIN answer_keys ON answer_keys.answer = releases.answer"
)
_LISTED = _RELEASE.replace("certificate, provenance, layout", "NULL, NULL, NULL")
"""Without the texts that a list does not show: together they can be large."""
_ACCESS_KEY = "id, hash, scopes, budgets, note, made_at, revoked_at, expires_at, replaces"


def _rows(columns: int, count: int) -> str:
    """Places for the values of so many rows."""
    return ", ".join([f"({', '.join(['%s'] * columns)})"] * count)


class Statements:
    """Adapted to one database."""

    def __init__(self, dialect: Dialect) -> None:
        adapt = self._adapt = dialect.adapt
        self._add_releases(adapt)
        self._add_answer_keys(adapt)
        self._add_access(adapt)
        self.migrations = tuple(tuple(map(adapt, statements)) for statements in MIGRATIONS)
        self.alive = adapt("SELECT 1")
        self.make_version = adapt("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
        self.version = adapt("SELECT version FROM schema_version")
        self.first_version = adapt("INSERT INTO schema_version (version) VALUES (%s)")
        self.set_version = adapt("UPDATE schema_version SET version = %s")
        self.fact = adapt("SELECT value FROM ledger WHERE name = %s")
        self.add_fact = adapt("INSERT INTO ledger (name, value) VALUES (%s, %s) ON CONFLICT DO NOTHING")
        self.locked_fact = adapt("SELECT value FROM ledger WHERE name = %s {lock_row}")
        self.set_fact = adapt(
            "INSERT INTO ledger (name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
        self.heads = adapt("SELECT id, entries, head FROM budgets ORDER BY id")
        self.hash_at = adapt("SELECT hash FROM entries WHERE budget = %s AND number = %s")
        self.budgets = adapt("SELECT {budget} FROM budgets ORDER BY id")
        self.budget = adapt("SELECT {budget} FROM budgets WHERE id = %s")
        self.locked_budget = adapt("SELECT {budget} FROM budgets WHERE id = %s {lock_row}")
        self.add_budget = adapt("INSERT INTO budgets ({budget}) VALUES ({values_24})")
        self.set_budget = adapt(
            "UPDATE budgets SET epsilon = %s, delta = %s, proportion_s = %s, proportion_d = %s, description = %s, "
            "s = %s, d = %s, charges = %s, only_release = %s, entries = %s, head = %s, "
            "hull_s = %s, hull_d = %s, privacy_unit = %s, period = %s, ray_s = %s, ray_d = %s, parent = %s, "
            "renews = %s, closes_after = %s, period_of = %s, most_sigma = %s, approval = %s WHERE id = %s"
        )
        self.children = adapt("SELECT id FROM budgets WHERE parent = %s")
        self.periods = adapt("SELECT {budget} FROM budgets WHERE period_of = %s ORDER BY id")
        self.charges_of_children = adapt("SELECT SUM(charges) FROM budgets WHERE parent = %s")
        self.set_ray_and_hull = adapt(
            "UPDATE budgets SET ray_s = %s, ray_d = %s, hull_s = %s, hull_d = %s WHERE id = %s"
        )
        self.first_charge_and_changes = adapt(
            "SELECT {history} WHERE budget = %s AND (kind <> 'charge' OR "
            "number = (SELECT MIN(number) FROM entries WHERE budget = %s AND kind = 'charge')) ORDER BY number"
        )
        self.add_entry = self.add_entries(1)
        # A name with entries and without a budget belongs to a budget whose row is gone.
        self.all_names = adapt("SELECT id FROM budgets UNION SELECT budget FROM entries ORDER BY 1")
        self.audited = adapt(
            "SELECT entries.budget, entries.number, kind, entries.at, payload, hash, s, d, entries.key, request, "
            "client, media_type, size, release_id, description, labels, content_hash, certificate, provenance, layout, "
            "state, committed, erased_at, erasure, releases.answer, answer_key, version, seal, answer_keys.key, facts "
            "FROM entries LEFT JOIN releases ON releases.key = entries.key "
            "LEFT JOIN answer_keys ON answer_keys.answer = releases.answer "
            "WHERE entries.budget = %s AND entries.number > %s ORDER BY entries.number LIMIT %s"
        )
        self.charges = adapt("SELECT {history} WHERE budget = %s AND number < %s ORDER BY number DESC LIMIT %s")
        self.last_charge = adapt("SELECT {history} WHERE budget = %s AND kind = 'charge' ORDER BY number DESC LIMIT 1")
        self.last_charges = adapt(
            "SELECT s, d, at FROM entries WHERE budget = %s AND kind = 'charge' ORDER BY number DESC LIMIT %s"
        )
        self.parts = adapt("SELECT s, d, COUNT(*) FROM entries WHERE budget = %s AND kind = 'charge' GROUP BY s, d")
        self.drawn_later = adapt(
            "SELECT {history} WHERE budget = %s AND kind IN ('redrawn', 'surveyed') ORDER BY number"
        )
        self.locked_key = adapt("SELECT key FROM entries WHERE key = %s {lock_row}")
        self.comparisons = adapt("SELECT until FROM comparisons WHERE key = %s")
        self.set_comparisons = adapt(
            "INSERT INTO comparisons (key, until) VALUES (%s, %s) "
            "ON CONFLICT (key) DO UPDATE SET until = excluded.until"
        )
        self.content = adapt("SELECT content FROM entries WHERE key = %s")

    def _add_releases(self, adapt: Callable[[str], str]) -> None:
        """Releases, their answers and their seeds."""
        self.erase_content = adapt("UPDATE entries SET content = NULL WHERE key = %s")
        self.add_part = adapt("INSERT INTO parts (answer, part, content) VALUES (%s, %s, %s)")
        self.part = adapt("SELECT content FROM parts WHERE answer = %s AND part = %s")
        self.last_part = adapt("SELECT MAX(part) FROM parts WHERE answer = %s")
        self.erase_parts = adapt("DELETE FROM parts WHERE answer = %s AND part > %s")
        self.stage = adapt("INSERT INTO staged (answer, at) VALUES (%s, %s)")
        self.staged = adapt("SELECT at FROM staged WHERE answer = %s {lock_row}")
        self.abandon = adapt("UPDATE staged SET at = '' WHERE answer = %s")
        self.unstage = adapt("DELETE FROM staged WHERE answer = %s")
        self.abandoned = adapt("SELECT answer FROM staged WHERE at < %s LIMIT 1")
        self.add_release = adapt(
            "INSERT INTO releases (key, budget, number, at, state, release_id, description, labels, certificate, "
            "provenance, layout, content_hash, answer, version, seal) VALUES ({values_15})"
        )
        self.draw_again = adapt(
            "UPDATE releases SET release_id = %s, certificate = %s, layout = %s, answer = %s WHERE key = %s"
        )
        self.set_content = adapt("UPDATE entries SET media_type = %s, content = %s WHERE key = %s")
        self.identities = adapt(
            "SELECT releases.key, releases.budget, releases.number, version, client, request, content_hash "
            "FROM releases JOIN entries ON entries.key = releases.key "
            "WHERE releases.key > %s ORDER BY releases.key LIMIT %s"
        )
        self.set_seal = adapt("UPDATE releases SET seal = %s WHERE key = %s")
        self.release = adapt("SELECT {release} WHERE releases.key = %s")
        self.release_by_id = adapt("SELECT {release} WHERE release_id = %s")
        self.set_state = adapt("UPDATE releases SET state = %s, committed = %s WHERE key = %s")
        self.set_surveyed = adapt("UPDATE releases SET certificate = %s, provenance = %s WHERE key = %s")
        self.set_erased = adapt(
            "UPDATE releases SET erased_at = %s, erasure = %s, answer_key = NULL, "
            "answer = CASE WHEN version = 1 THEN NULL ELSE answer END WHERE key = %s"
        )
        self.erased = adapt("SELECT key, erased_at FROM releases WHERE erased_at IS NOT NULL")
        self.set_erasure = adapt("UPDATE releases SET erasure = %s WHERE key = %s")
        self.outdated = adapt(
            "SELECT key, answer FROM releases WHERE state = 'made' AND erased_at IS NULL AND at < %s LIMIT 100"
        )
        self.add_seed = adapt("INSERT INTO seeds (key, nonce) VALUES (%s, %s)")
        self.seed = adapt("SELECT nonce FROM seeds WHERE key = %s")
        self.erase_seed = adapt("DELETE FROM seeds WHERE key = %s")

    def _add_answer_keys(self, adapt: Callable[[str], str]) -> None:
        """The keys of answers, and the marks in their place."""
        self.add_answer_key = adapt("INSERT INTO answer_keys (answer, key, facts) VALUES (%s, %s, %s)")
        self.store_answer_key = adapt(
            "UPDATE answer_keys SET key = %s, facts = %s WHERE answer = %s AND key = %s AND facts = %s RETURNING answer"
        )
        self.drop_mark = adapt("DELETE FROM answer_keys WHERE answer = %s AND key = %s AND facts = %s RETURNING answer")
        self.erase_answer_key = adapt("UPDATE answer_keys SET key = %s WHERE answer = %s")
        self.unread_answers = adapt("SELECT answer FROM answer_keys WHERE facts = %s AND key <> %s")
        self.set_mark = adapt("UPDATE answer_keys SET key = %s WHERE answer = %s")

    def _add_access(self, adapt: Callable[[str], str]) -> None:
        """Access keys, their history, and requests that wait for a second one."""
        self.add_key = adapt("INSERT INTO access_keys ({access_key}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)")
        self.keys = adapt("SELECT {access_key} FROM access_keys ORDER BY made_at, id")
        self.revoke_key = adapt("UPDATE access_keys SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL")
        self.expire_key = adapt("UPDATE access_keys SET expires_at = %s WHERE id = %s")
        approval = "SELECT id, kind, budget, number, key, state, decision FROM approvals"
        self.add_approval = adapt(
            "INSERT INTO approvals (id, kind, budget, number, key, state) VALUES (%s, %s, %s, %s, %s, %s)"
        )
        self.decide_approval = adapt("UPDATE approvals SET state = %s, decision = %s WHERE id = %s")
        self.finish_approval = adapt("UPDATE approvals SET state = %s WHERE id = %s")
        self.approval = adapt(f"{approval} WHERE id = %s")
        self.locked_approval = adapt(f"{approval} WHERE id = %s {{lock_row}}")
        self.approval_of = adapt(f"{approval} WHERE key = %s")
        self.locked_approval_of = adapt(f"{approval} WHERE key = %s {{lock_row}}")
        self.approvals = adapt(approval)
        self.approvals_of = adapt(f"{approval} WHERE budget = %s")
        entry = "SELECT number, kind, at, payload, hash FROM access_entries"
        self.add_access_entry = adapt(
            "INSERT INTO access_entries (number, kind, at, payload, hash) VALUES (%s, %s, %s, %s, %s)"
        )
        self.access_entries = adapt(f"{entry} WHERE number < %s ORDER BY number DESC LIMIT %s")
        self.access_entries_from = adapt(f"{entry} WHERE number > %s ORDER BY number LIMIT %s")

    @lru_cache(maxsize=16)  # noqa: B019 - there is one of these for each database, for ever
    def set_budgets(self, count: int) -> str:
        """Several budgets, which are there, in one message: a charge at all levels takes little longer then."""
        statement = "INSERT INTO budgets ({budget}) VALUES {rows} ON CONFLICT (id) DO UPDATE SET {replaced}"
        return self._adapt(statement, rows=_rows(24, count))

    @lru_cache(maxsize=16)  # noqa: B019
    def add_entries(self, count: int) -> str:
        return self._adapt("INSERT INTO entries ({entry}) VALUES {rows}", rows=_rows(14, count))

    def entries_at(self, numbers: int) -> str:
        """Entries of one budget by their numbers."""
        return self._adapt(f"SELECT {{history}} WHERE budget = %s AND number IN ({', '.join(['%s'] * numbers)})")

    def releases(self, budgets: int, *, is_continued: bool) -> str:
        """A page of releases, the newest first: of so many budgets (0 for all), after the last one of another page."""
        conditions = ["1 = 1"]
        if budgets:
            conditions.append(f"releases.budget IN ({', '.join(['%s'] * budgets)})")
        if is_continued:
            conditions.append("(releases.at, releases.key) < (SELECT at, key FROM releases WHERE key = %s)")
        where = " AND ".join(conditions)
        return self._adapt(f"SELECT {{listed}} WHERE {where} ORDER BY releases.at DESC, releases.key DESC LIMIT %s")
