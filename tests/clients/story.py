"""A program for the client that openapi-python-client makes: calibrate → account → release → budget.

It is type-checked with the client and run against a live service. It prints one JSON object.
"""

import json
import sys
from io import BytesIO

import pyarrow as pa
from gsh_client import AuthenticatedClient
from gsh_client.api.account import account_exact
from gsh_client.api.budgets import get_budget, put_budget
from gsh_client.api.calibrate import calibrate
from gsh_client.api.release import release, release_table
from gsh_client.api.service import get_problem
from gsh_client.models import (
    AccountAnswer,
    BudgetIn,
    BudgetOut,
    BudgetProblem,
    CalibrateAnswer,
    CalibrateRequest,
    DraftIn,
    ExactRequest,
    GroupsIn,
    Problem,
    ProblemType,
    ReleaseAnswer,
    ReleaseRequest,
    ReleaseTableForm,
    ReusedProblem,
    TableRequest,
)
from gsh_client.types import File


def main(url: str, access_key: str) -> None:
    client = AuthenticatedClient(base_url=url, token=access_key)

    target = CalibrateRequest(mechanism=DraftIn(tau=1, c_u=51914), epsilon=0.349, delta=1e-5)
    calibrated = calibrate.sync(client=client, body=target)
    assert isinstance(calibrated, CalibrateAnswer)
    mechanism = calibrated.mechanism

    accounted = account_exact.sync(client=client, body=ExactRequest(mechanism=mechanism, epsilon=0.349))
    assert isinstance(accounted, AccountAnswer)

    groups = GroupsIn(keys=["a.org", "b.org"], counts=[48211, 3])
    free = release.sync(client=client, body=ReleaseRequest(mechanism=mechanism, epsilon=0.349, groups=groups))
    assert isinstance(free, ReleaseAnswer)

    made = put_budget.sync("web", client=client, body=BudgetIn(epsilon=0.35, delta=1.1e-5, description="page views"))
    assert isinstance(made, BudgetOut)
    body = ReleaseRequest(mechanism=mechanism, epsilon=0.349, budget="web", groups=groups)
    paid, again = (release.sync(client=client, body=body, idempotency_key="week-1") for _ in range(2))
    assert isinstance(paid, ReleaseAnswer)
    refused = release.sync(client=client, body=body, idempotency_key="week-2")
    assert isinstance(refused, BudgetProblem)
    reused = release.sync(
        client=client, body=ReleaseRequest(mechanism=mechanism, budget="web", groups=groups), idempotency_key="week-1"
    )
    assert isinstance(reused, ReusedProblem)
    keyless = release.sync(client=client, body=body)
    assert isinstance(keyless, Problem)
    spent = get_budget.sync("web", client=client)
    assert isinstance(spent, BudgetOut)

    meaning = get_problem.sync(refused.type_.rpartition("/")[2], client=client)
    assert isinstance(meaning, ProblemType)

    sink = BytesIO()
    table = pa.table({"url": ["a.org"], "users": [48211]})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    form = ReleaseTableForm(
        request=TableRequest(mechanism=mechanism, count_column="users", key_columns=["url"]),
        table=File(BytesIO(sink.getvalue()), "groups.arrow", "application/vnd.apache.arrow.stream"),
    )
    file = release_table.sync(client=client, body=form)
    assert isinstance(file, File)
    kept = pa.ipc.open_stream(file.payload.read()).read_all()

    told = {
        "delta": accounted.points[0].delta,
        "released": free.groups.keys,
        "same": again == paid,
        "releases": spent.spent.releases,
        "refused": refused.type_,
        "asked": refused.asked.mu_squared,
        "reused": reused.type_,
        "header": keyless.errors[0].header,
        "what_to_do": meaning.what_to_do,
        "urls": kept["url"].to_pylist(),
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
