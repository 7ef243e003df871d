"""SQL for PostgreSQL: the schema and the statements are translated from SQLite's. No server is needed."""

from __future__ import annotations

import ast
import re
import sqlite3
from pathlib import Path

import pytest

from sightline.store import migrations
from sightline.store.migrations import MIGRATIONS
from sightline.store.postgres_connection import convert_values, translate_statement
from sightline.store.postgres_database import FIRST_VERSION, list_statements, translate_schema
from tests.requirements import requirement

STORE = Path(migrations.__file__).parent
PORTS = (
    "sql_images.py",
    "sql_descriptions.py",
    "sql_conversations.py",
    "sql_ledger.py",
    "sql_store.py",
    "transactions.py",
    "sweeps.py",
    "sql.py",
)


@requirement("record.shared.schema")
def test_every_table_and_column_of_sqlite_is_created_in_postgresql() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(database)
    created = {
        found[1]: statement
        for statement in list_statements(0)
        if (found := re.match(r"CREATE TABLE (\w+) \(", statement))
    }
    for statement in list_statements(0):
        if found := re.match(r"ALTER TABLE (\w+) ADD COLUMN ", statement):
            created[found[1]] += statement
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert {*tables, "sightline"} == created.keys()
    for table in tables:
        columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
        assert all(re.search(rf"\b{column} (TEXT|BIGINT|DOUBLE)", created[table]) for column in ["rowid", *columns])
    database.close()


@requirement("record.shared.schema")
def test_the_latest_schema_needs_no_statement_and_each_migration_has_one_number() -> None:
    assert list_statements(len(MIGRATIONS)) == []
    later = [translate_schema(each) for migration in MIGRATIONS[FIRST_VERSION:] for each in migration]
    assert list_statements(FIRST_VERSION) == later


@requirement("record.shared.dialect")
@pytest.mark.parametrize(
    ("written", "translated"),
    [
        ("SELECT a FROM t WHERE (b, c) = (?, ?)", "SELECT a FROM t WHERE (b, c) = (%(p1)s, %(p2)s)"),
        ("SELECT ?1, ?2, ?1", "SELECT %(p1)s, %(p2)s, %(p1)s"),
        ("SELECT instr(a, ?) > 0", "SELECT strpos(a, %(p1)s) > 0"),
        ("SELECT 'a%'", "SELECT 'a%%'"),
        ("SELECT a FROM t NOT INDEXED WHERE b = ?", "SELECT a FROM t WHERE b = %(p1)s"),
        ("SELECT CAST(? AS REAL)", "SELECT CAST(%(p1)s AS DOUBLE PRECISION)"),
        (
            "a IN (SELECT value FROM json_each(?))",
            "a IN (SELECT value FROM json_array_elements_text(CAST(%(p1)s AS json)) AS json_each(value))",
        ),
    ],
)
def test_a_statement_is_translated(written: str, translated: str) -> None:
    assert translate_statement(written) == translated


@requirement("record.shared.dialect")
def test_values_are_what_postgresql_takes() -> None:
    assert convert_values((True, None, 2, "a\0b")) == {
        "p1": 1,
        "p2": None,
        "p3": 2,
        "p4": "a\N{REPLACEMENT CHARACTER}b",
    }


@requirement("record.shared.dialect")
@pytest.mark.parametrize("name", PORTS)
def test_the_ports_use_only_sql_that_both_databases_know(name: str) -> None:
    tree = ast.parse((STORE / name).read_text())
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    documented = (node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    docs = {ast.get_docstring(node, clean=False) for node in documented}
    statements = [text for text in texts if text not in docs]
    for word in ("INSERT OR ", "ifnull(", "PRAGMA", "GLOB", "strftime", "unixepoch", "?1 IS NULL"):
        assert not [text for text in statements if word in text]
