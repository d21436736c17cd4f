"""Type checkers see what each call of both clients gives, and find mistakes."""

from pathlib import Path

import pytest

from tests.type_checks import check_programs

PROGRAM = """
import numpy as np
import pyarrow as pa
import gsh
from gsh.client import Budget, BudgetExceeded, Certificate, Charge, Release, ReleasedGroups, Retries

def blocking(service: gsh.Client, df: pa.Table) -> None:
    found: gsh.Calibration = service.calibrate(c_u=5, epsilon=1, delta=1e-6, sums={"likes": (0, 5)}, caps={"likes": 2})
    point: gsh.Privacy = service.exact(found, epsilon=1.0)
    curve: gsh.Curve = service.add_deltas(found.mechanism, delta=np.linspace(0.1, 0.5, 3))
    price = service.compare(c_u=5, epsilon=1, delta=1e-6)["zcdp"]
    ratio: float = 0.0 if price is None else price.sigma_ratio
    r: Release = service.release(df, found, users="users", keys=["url"], budget="web", once="W46")
    certificate: Certificate = r.certificate
    epsilon: float | None = certificate.epsilon
    groups: ReleasedGroups = service.release(found.mechanism, keys=["a"], counts=[3])
    plain: gsh.Groups = groups
    table = service.release(found.mechanism, "table.parquet", key_columns=["url"], count_column="users")
    budget: Budget = service.budgets["web"]
    charge: Charge = service.budgets.charge("web", found, once="W46", labels=["weekly"])
    for release in service.releases:
        key: str = release.key
        written: Certificate = release.certificate
    try:
        service.check()
    except BudgetExceeded as error:
        spent: float = error.spent.mu_squared
    except gsh.Error as error:
        detail: str = error.detail

async def waiting(service: gsh.AsyncClient, df: pa.Table) -> None:
    found: gsh.Calibration = await service.calibrate(c_u=5, epsilon=1, delta=1e-6)
    point: gsh.Privacy = await service.exact(found, epsilon=1.0)
    curve: gsh.Curve = await service.exact(found, epsilon=[1.0])
    r: Release = await service.release(df, found, users="users", keys=["url"], budget="web", once="W46")
    groups: ReleasedGroups = await service.release(found, keys=["a"], counts=[3])
    budget: Budget = await service.budgets["web"]
    async for release in service.releases:
        written: Certificate = await release.certificate

gsh.Client("http://a.org", key="k", retries=Retries(most=2), timeout=5, verify=False, proxy=None)
"""
MISTAKES = """
import pyarrow as pa
import gsh

service = gsh.Client("http://a.org")
waiting = gsh.AsyncClient("http://a.org")
m = gsh.Mechanism(c_u=5, tau_star=9, sigma=1)
service.exact(m, epsilon=1.0).epsilom
service.exact(m, epsilon="1")
service.calibrate(c_u="5", epsilon=1, delta=1e-6)
service.calibrate(c_u=5, epsilon=1)
service.release("table.parquet", m, users="users")
service.release("table.parquet", m, users="users", keys=["url"], once=7)
service.release("table.parquet", m, users="users", keys=["url"], seed=7)
service.budgets.charge("web", m)
service.budgets["web"].spend
waiting.version().service
service.releases.answer("W46", "xlsx")
gsh.Client("http://a.org", timeout="5")
gsh.Client("http://a.org", colour="red")
"""


@pytest.mark.slow
def test_programs_of_users_are_type_checked(tmp_path: Path) -> None:
    check_programs(tmp_path, PROGRAM, MISTAKES, after="m = gsh.Mechanism(c_u=5, tau_star=9, sigma=1)")
