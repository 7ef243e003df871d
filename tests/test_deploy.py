"""The files in `deploy` name settings, options and locks that exist; `tests/e2e/test_replicas.py` runs replicas."""

from __future__ import annotations

import re
from pathlib import Path

from sightline.cli.main import build_verb_parser
from sightline.model.shared_address import SharedAddress
from sightline.settings import KEYS
from tests.requirements import requirement

ROOT = Path(__file__).parents[1]
COMPOSE = (ROOT / "deploy" / "compose.yaml").read_text("utf-8")
PROXY = (ROOT / "src/sightline/surfaces/proxy/app.py").read_text("utf-8")
CONTAINER = (ROOT / "deploy" / "Containerfile").read_text("utf-8")


@requirement("project.deploy")
def test_the_compose_file_sets_variables_that_exist_and_addresses_that_can_be_used() -> None:
    known = {variable for key in KEYS for variable in key.variables} | {"SIGHTLINE_TOKEN"}
    named = dict(re.findall(r"^      (SIGHTLINE_\w+): (.*)$", COMPOSE, re.MULTILINE))
    assert named.keys() <= known
    assert SharedAddress(named["SIGHTLINE_STORE"], named["SIGHTLINE_BLOBS"]).check() is None
    assert "replicas: 2" in COMPOSE


@requirement("project.deploy")
def test_the_compose_file_has_no_secret_and_asks_for_every_one() -> None:
    secrets = re.findall(r"^ +\w*(?:PASSWORD|TOKEN|SECRET\w*|KEY_ID): (.*)$", COMPOSE, re.MULTILINE)
    assert secrets
    assert all(value.startswith("${") for value in secrets)
    names = {value.strip("${}").partition(":")[0] for value in secrets}
    assert all(f"${{{name}:?" in COMPOSE for name in names)


@requirement("project.deploy", "route.ready")
def test_replicas_are_checked_at_pages_that_exist() -> None:
    checked = {path for text in (COMPOSE, CONTAINER) for path in re.findall(r"8790(/sightline/\w+)'", text)}
    assert checked == {"/sightline/health", "/sightline/ready"}
    assert all(f'"{path}"' in PROXY for path in checked)


@requirement("project.deploy")
def test_the_container_installs_from_the_lock_and_runs_a_command_that_exists() -> None:
    assert "--require-hashes --requirement scale.txt" in CONTAINER
    assert {"psycopg==", "obstore=="} <= set(
        re.findall(r"^\w+==", (ROOT / "requirements/scale.txt").read_text(), re.MULTILINE)
    )
    found = re.search(r"^CMD \[(.*)\]$", CONTAINER, re.MULTILINE)
    assert found
    program, verb, *words = re.findall(r'"([^"]*)"', found[1])
    assert program == "sightline"
    assert build_verb_parser(verb).parse_args(words).host == "0.0.0.0"
    uid = re.search(r"--uid (\d+)", CONTAINER)
    assert uid
    assert f"USER {uid[1]}\n" in CONTAINER
