"""compose.yaml is read and not run: its variables are settings of the service."""

from pathlib import Path

import yaml

from app.settings import Settings

COMPOSE = yaml.safe_load((Path(__file__).parent.parent / "compose.yaml").read_text())


def test_every_variable_is_a_setting_and_secrets_have_no_default() -> None:
    environment = COMPOSE["services"]["service"]["environment"]

    assert {name.removeprefix("GSH_").lower() for name in environment} <= set(Settings.model_fields)
    assert ":?" in environment["GSH_LEDGER_SECRET"]
    assert ":?" in environment["GSH_LEDGER"]


def test_the_service_waits_for_a_database_that_keeps_its_data() -> None:
    services = COMPOSE["services"]

    assert services["service"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services["postgres"]["healthcheck"]
    assert {volume.partition(":")[0] for volume in services["postgres"]["volumes"]} == set(COMPOSE["volumes"])
