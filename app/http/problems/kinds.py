"""The kinds of problem: for each its type, its status, and a page in words.

``type`` is the path of that page below the root of the service, without a path prefix: the same string on every
deployment, so that programs can compare it. The page of a problem is at the service's base URL followed by ``type``.
"""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["BY_STATUS", "CONNECTION_KINDS", "KINDS", "Kind"]


class Kind(NamedTuple):
    """What is the same for all problems of one type."""

    name: str
    status: int
    title: str
    detail: str
    """One sentence, for problems that know no better one."""
    what_happened: str
    what_to_do: str

    @property
    def type(self) -> str:
        return f"/problems/{self.name}"


INVALID_JSON = Kind(
    "invalid-json",
    400,
    "Invalid JSON",
    "The body is not JSON.",
    "The service could not read the body as JSON in UTF-8. Nothing was computed and nothing was charged.",
    "Send a complete JSON document. Look for a missing bracket, a trailing comma, single quotes or another encoding.",
)
INVALID_MULTIPART = Kind(
    "invalid-multipart",
    400,
    "Invalid multipart",
    "The body is not complete multipart/form-data.",
    "The body ended too early, or its parts are not separated by the boundary that Content-Type names.",
    "Let an HTTP library build the form: one part named request with JSON, and one part named table with the file.",
)
INVALID_ENCODING = Kind(
    "invalid-encoding",
    400,
    "Invalid encoding",
    "The body is not complete data of its Content-Encoding.",
    "The header Content-Encoding says that the body is compressed, but the body is damaged, ends too early, or has "
    "something after its end. Or it is zstd with a window of more than 8 MiB. Nothing was computed and nothing was "
    "charged.",
    "Send the compressed data to its end, or send the body uncompressed and without the header. For zstd, use a level "
    "up to 19, and no long-distance window.",
)
INVALID_HTTP = Kind(
    "invalid-http",
    400,
    "Invalid HTTP",
    "The request is not HTTP that the service can read.",
    "The connection carried bytes that are not an HTTP/1.1 request. The service closed the connection.",
    "Use an HTTP library. If a proxy stands between, check that it speaks plain HTTP/1.1 to the service.",
)
KEY_REQUIRED = Kind(
    "key-required",
    401,
    "Access key required",
    "The request needs an access key in the header Authorization: Bearer, which is not revoked and has not expired.",
    "The request had no access key, or one that the service does not know, or one that was revoked or has expired.",
    "Send the header “Authorization: Bearer” with your access key. An operator makes one with “gsh keys create”, and a "
    "new one in place of another with “gsh keys rotate”.",
)
NOT_ALLOWED = Kind(
    "not-allowed",
    403,
    "Not allowed",
    "This access key lacks the scope or the budget.",
    "The access key is valid, but it does not have the scope for this operation, or it is bound to other budgets. "
    "While no access key exists, the service answers such requests from its own machine only.",
    "Ask an operator for an access key with the scope and the budget that you need. On a new service, make the first "
    "access key, or send the request from the same machine to localhost.",
)
NO_SECOND_KEY = Kind(
    "no-second-key",
    403,
    "No second key",
    "Another access key must decide than the one that asked.",
    "The request waits for an approval by another client. An access key that was rotated is still the same client. "
    "Without an access key nobody can ask or decide.",
    "Let another administrator approve or refuse it.",
)
NOT_FOUND = Kind(
    "not-found",
    404,
    "Not found",
    "There is no such resource.",
    "The service has nothing at this path.",
    "Check the path against the API reference of this service. Paths do not end with a slash.",
)
UNKNOWN_BUDGET = Kind(
    "unknown-budget",
    404,
    "Unknown budget",
    "There is no such budget.",
    "The request names a budget that does not exist. Nothing was released and nothing was charged.",
    "Check the name with GET /budgets, or make the budget with PUT /budgets/{id}.",
)
UNKNOWN_ACCESS_KEY = Kind(
    "unknown-access-key",
    404,
    "Unknown access key",
    "There is no such access key.",
    "No access key has this id, or your own access key is bound to other budgets than that one.",
    "Check the id with GET /access-keys.",
)
UNKNOWN_APPROVAL = Kind(
    "unknown-approval",
    404,
    "Unknown request",
    "There is no such request for an approval.",
    "No request has this id, or your access key may not use the budget that it is about.",
    "Check the id with GET /approvals.",
)
METHOD_NOT_ALLOWED = Kind(
    "method-not-allowed",
    405,
    "Method not allowed",
    "The resource does not allow this method.",
    "The path exists, but not for this HTTP method.",
    "Use a method that the header Allow of the answer lists.",
)
REQUEST_TIMEOUT = Kind(
    "request-timeout",
    408,
    "Request timeout",
    "The request did not arrive in time.",
    "The client opened a connection but sent its request too slowly, or not to its end. Nothing was charged.",
    "Send the request again. If it is large, use a faster connection or a smaller table.",
)
BUDGET_EXCEEDED = Kind(
    "budget-exceeded",
    409,
    "Budget exceeded",
    "The release does not fit the remaining budget.",
    "The release would cost more privacy than the budget has remaining. Nothing was released, nothing was charged and "
    "no noise was drawn. The member budget names the budget that is short: the one of the request, or one of its "
    "ancestors. The members limit, spent and asked show its numbers.",
    "Ask for less: more noise, a higher threshold, or fewer columns. POST /calibrate with the name of the budget finds "
    "a mechanism that fits. The owner of the data can also raise the limit with PUT /budgets/{id}.",
)
TOO_LITTLE_LEFT = Kind(
    "too-little-left",
    409,
    "Too little left",
    "Less than half of a usual release is left of the budget.",
    "What remains of the budget allows only releases with far more noise than usual: it is less than half of the "
    "average cost of a release so far, or σ would be above its bound. Such a table is nearly empty, and costs what is "
    "left. Nothing was released, nothing was charged, and no idempotency key was used.",
    "The list errors of the problem says what is short. The owner of the data can raise the limit with PUT "
    "/budgets/{id}. If you want the noise, give most_sigma: the largest σ that you accept.",
)
DIVISION_SETTLED = Kind(
    "division-settled",
    409,
    "Division settled",
    "The first charge settled how noise and thresholds share the budget.",
    "The change would divide the budget between noise and thresholds in another way after its first charge. Choosing "
    "the division after seeing results could nearly double δ, so the service refuses it. The budget is unchanged.",
    "Omit the mechanism, and change epsilon and delta alone.",
)
UNIT_SETTLED = Kind(
    "unit-settled",
    409,
    "Unit settled",
    "The first charge fixed the privacy unit and the period of the budget.",
    "The change would say that the budget protects another unit or period than its releases do. The budget is "
    "unchanged.",
    "Omit privacy_unit and period. For another unit, make another budget.",
)
PARENT_SETTLED = Kind(
    "parent-settled",
    409,
    "Parent settled",
    "The first charge fixed the parent of the budget.",
    "The change would give the budget another parent, or none, after its first charge. The releases so far were "
    "charged to the ancestors that it had, and to no others. The budget is unchanged.",
    "Omit parent. For releases under another parent, make another budget.",
)
PERIOD_CLOSED = Kind(
    "period-closed",
    409,
    "Period closed",
    "The period of the budget has ended, and is closed for charges.",
    "The budget is for one period, and more days have passed since its end than closes_after of the budget. Nothing "
    "was released and nothing was charged.",
    "Release the records with those of a later period. The owner of the data can raise closes_after of the period "
    "with PUT /budgets/{id}.",
)
ACCESS_KEY_ENDED = Kind(
    "access-key-ended",
    409,
    "Access key ended",
    "The access key is not active, or was replaced before.",
    "Only an active access key can be rotated, and once only. This one was revoked, has expired, or has a successor.",
    "GET /access-keys shows its state, and which access key replaced it. If nobody has that one, revoke it and make "
    "another with POST /access-keys.",
)
APPROVAL_REFUSED = Kind(
    "approval-refused",
    409,
    "Approval refused",
    "The release was refused by another access key.",
    "The budget lets releases wait for an approval. The request for this one was refused. Nothing was released, "
    "nothing was charged and no noise was drawn. A refused request stays refused.",
    "Read the reason in the detail, or with GET /approvals/{id}. Ask again with another idempotency key.",
)
ALREADY_DECIDED = Kind(
    "already-decided",
    409,
    "Already decided",
    "The request is decided already.",
    "Somebody else has approved or refused the request, or it is done. A decision is not changed.",
    "GET /approvals/{id} shows who decided, and why.",
)
OUTDATED_REQUEST = Kind(
    "outdated-request",
    409,
    "Outdated request",
    "The budget has changed since somebody asked for this change.",
    "The request says what the budget was and what it would be. The budget is not that any more, so the change would "
    "not be the one that was asked for. The budget is unchanged.",
    "Refuse the request, and let its owner ask again with PUT /budgets/{id}.",
)
KEY_MISSING = Kind(
    "idempotency-key-missing",
    400,
    "Idempotency key missing",
    "A release with a budget needs the header Idempotency-Key.",
    "The request names a budget but has no idempotency key. Without one, a retry would be charged again. Nothing was "
    "released and nothing was charged.",
    "Send the header Idempotency-Key with a name for this release, such as web-2026-46: 1 to 255 letters, digits and "
    "the characters . _ ~ : and -. Send the same one when you retry.",
)
UNKNOWN_RELEASE = Kind(
    "unknown-release",
    404,
    "Unknown release",
    "There is no such release, or it has no answer.",
    "No release has this idempotency key, or your access key may not use the budget that paid for it, or another "
    "engine made it, so that the service has no answer. Or the service stopped before the answer was stored.",
    "Check the name with GET /releases. A release without a budget is not recorded. If the state is made, send the "
    "same request again with the same idempotency key: it is charged once only.",
)
NO_CERTIFICATE = Kind(
    "no-certificate",
    404,
    "No certificate",
    "The ledger has no certificate of this release.",
    "Version 0.1 recorded this release. It kept certificates only inside answers, and had none for a charge alone.",
    "If the release has an answer, GET /releases/{key}/answer: the certificate is a member of a JSON answer, and in "
    "the metadata of a table.",
)
NOT_ACCEPTABLE = Kind(
    "not-acceptable",
    406,
    "Not acceptable",
    "The service has no format that the header Accept names.",
    "The header Accept names only formats that this resource does not have.",
    "Omit the header Accept, or name one of the formats that the API reference lists.",
)
NOT_OPEN = Kind(
    "not-open",
    409,
    "Not open",
    "Only a release that was opened with POST /releases can be committed or surveyed.",
    "The service itself made this release, or it was only charged. There is nothing to commit.",
    "Commit only releases that POST /releases has opened.",
)
ALREADY_SURVEYED = Kind(
    "already-surveyed",
    409,
    "Already surveyed",
    "Other bounds were chosen for this release, or from another survey.",
    "An earlier run recorded a survey under this name, and this one differs: its events, or its code, are others. "
    "Bounds are chosen once: a second survey would cost privacy that nobody accounted for.",
    "Run the job on the events of the first run, or use a new idempotency key, which is charged again.",
)
ALREADY_COMMITTED = Kind(
    "already-committed",
    409,
    "Already committed",
    "The release was committed with another digest.",
    "An output with another digest is recorded for this release. Two outputs under one name would be two releases.",
    "Do not publish the second output. GET /releases/{key} shows the digest of the first.",
)
ANSWER_ERASED = Kind(
    "answer-erased",
    410,
    "Answer erased",
    "The answer was kept for some days, and is erased.",
    "The service keeps answers for as many days as GSH_ANSWER_DAYS says. The charge and the certificate stay.",
    "Use the copy that you published. A new release of the same table needs another idempotency key, and is charged.",
)
CONTENT_TOO_LARGE = Kind(
    "content-too-large",
    413,
    "Content too large",
    "The body is larger than the service accepts.",
    "The body has more bytes, or the table has more groups, than the settings of the service allow.",
    "Send less, or send the groups as a table to POST /release/table. An operator can raise the limit.",
)
UNSUPPORTED_MEDIA_TYPE = Kind(
    "unsupported-media-type",
    415,
    "Unsupported media type",
    "The body must be JSON, or multipart/form-data for a table.",
    "The header Content-Type is missing, or names a media type that this operation does not read. Or the header "
    "Content-Encoding names a coding that the service does not read.",
    "Send “Content-Type: application/json”. For POST /release/table send multipart/form-data. Compress with gzip or "
    "zstd, or not at all.",
)
INVALID_REQUEST = Kind(
    "invalid-request",
    422,
    "Invalid request",
    "The request is not valid.",
    "A field, a header or a parameter is missing, unknown, of the wrong type or outside its bounds. Nothing was "
    "computed and nothing was charged.",
    "Read the list errors of the problem. Each item names one place (pointer for the body, header, or parameter for "
    "the URL) and says what it must be.",
)
INFEASIBLE_TARGET = Kind(
    "infeasible-target",
    422,
    "Infeasible target",
    "Nothing meets the target.",
    "No value of the fields to solve for reaches this epsilon and delta, or fits the remaining budget. The "
    "request is valid, and the answer is certain.",
    "The list errors of the problem says which value would make the target possible: change that value, or ask for a "
    "larger epsilon or delta.",
)
KEY_REUSED = Kind(
    "key-reused",
    422,
    "Idempotency key reused",
    "The Idempotency-Key belongs to another request.",
    "An earlier request used the same idempotency key with different content: another mechanism, budget, ε or δ, other "
    "names of columns, or other groups. Nothing was released and nothing was charged for this request.",
    "GET /releases/{key} says what has this name, and GET /releases/{key}/answer gives its answer, if the service made "
    "it. For another release, use another idempotency key.",
)
LIMIT_EXCEEDED = Kind(
    "limit-exceeded",
    422,
    "Limit exceeded",
    "The request asks for more than the service is set up to do.",
    "The request is valid, but it needs more points, evaluations or work than the settings of the service allow, or it "
    "would release with less noise than they allow.",
    "Split the request, ask for fewer points, columns or vectors, or add more noise. An operator can change the limit.",
)
TOO_MANY_ATTEMPTS = Kind(
    "too-many-attempts",
    429,
    "Too many attempts",
    "Too many wrong access keys, or too many different requests under one idempotency key.",
    "One client sent too many wrong access keys, or sent one idempotency key with different content too often. The "
    "service slows such attempts down, because each attempt is a guess.",
    "Wait as many seconds as the header Retry-After says. Then check the access key, or use a new idempotency key.",
)
HEADERS_TOO_LARGE = Kind(
    "headers-too-large",
    431,
    "Headers too large",
    "The URL and the headers are larger than the service accepts.",
    "The URL and the headers of the request together have more bytes than the service reads.",
    "Send fewer or shorter headers, and put the data into the body.",
)
INTERNAL_ERROR = Kind(
    "internal-error",
    500,
    "Internal error",
    "The service failed. This is a bug.",
    "The service met an error that it did not expect. This is always a bug of the service, not of your request.",
    "Tell the operator the time of the request: the log says where the service failed. A release with a budget can be "
    "sent again unchanged: it is charged once only.",
)
BUSY = Kind(
    "busy",
    503,
    "Busy",
    "The service cannot answer now; try again shortly.",
    "The service has no free worker, memory or disk for this request at the moment, or it is shutting down.",
    "Wait as many seconds as the header Retry-After says, and send the same request again.",
)
LEDGER_UNAVAILABLE = Kind(
    "ledger-unavailable",
    503,
    "Ledger unavailable",
    "The ledger cannot be read or written now; nothing was released.",
    "The database with the budgets cannot be reached, read or written. Without it the service releases nothing.",
    "Send the same request again with the same idempotency key: it is charged once only. If this lasts, tell the "
    "operator: the log has the reason.",
)
DEADLINE_PASSED = Kind(
    "deadline-passed",
    503,
    "Deadline passed",
    "The request took longer than the service allows, and was stopped.",
    "The computation did not finish in the time that the settings of the service allow. Nothing was charged.",
    "Ask for fewer points, columns or groups, or try again when the service is less busy. An operator can raise the "
    "limit.",
)

KINDS = tuple(
    sorted((each for each in list(globals().values()) if isinstance(each, Kind)), key=lambda kind: kind.status)
)
"""Every kind, by status."""

CONNECTION_KINDS: Mapping[int, Kind] = {
    kind.status: kind for kind in (INVALID_HTTP, REQUEST_TIMEOUT, HEADERS_TOO_LARGE)
}
"""For bytes that are not a request yet, so that no route answers them."""

BY_STATUS: Mapping[int, Kind] = {
    kind.status: kind
    for kind in (
        INVALID_JSON,
        KEY_REQUIRED,
        NOT_ALLOWED,
        NOT_FOUND,
        METHOD_NOT_ALLOWED,
        NOT_ACCEPTABLE,
        CONTENT_TOO_LARGE,
        UNSUPPORTED_MEDIA_TYPE,
        INVALID_REQUEST,
        TOO_MANY_ATTEMPTS,
        INTERNAL_ERROR,
        BUSY,
    )
}
"""The kind of a status that comes without one."""
