"""What schemathesis must know of dlock that its description does not say.

Read by `cargo xtask scan` (see xtask/src/scan.rs). The description itself is used as it is committed.
"""

import atexit
import collections
import os

import schemathesis

# A wait for a lock is a request like any other, but a scan has no hour for it: in milliseconds.
LONGEST_WAIT = 50


@schemathesis.hook
def before_call(context, case, **kwargs):
    """Shortens waits; values that the description refuses are left as they are."""
    body = case.body
    if isinstance(body, dict):
        wait = body.get("max_wait_ms")
        if type(wait) is int and LONGEST_WAIT < wait <= 3_600_000:
            body["max_wait_ms"] = LONGEST_WAIT


def link(operation, **body):
    """A call whose body takes these fields out of the answer before it; `None` is `null`."""
    fields = {
        field: None if source is None else f"$response.body#/{source}"
        for field, source in body.items()
    }
    return {"operationId": operation, "requestBody": fields}


GRANT = {"name": "name", "namespace": "namespace", "session_id": "session_id"}
HELD = {**GRANT, "fencing_token": "fencing_token"}
SESSION = {"session_id": "session_id"}
# The form of an acquire that names its session has neither of these.
IN_SESSION = {**SESSION, "owner": None, "ttl_ms": None}
LOCK = {"name": "name", "namespace": "namespace"}

# Which answers lead to which calls: without them every token and every session is a guess, and
# what is done with a lock that is really held is never met.
LINKS = {
    ("/v1/locks/acquire", "200"): {
        "renew": link("renew", **HELD),
        "release": link("release", **HELD),
        "acquire": link("acquire", **GRANT, owner=None, ttl_ms=None),
        "keep_session": link("keep_session", **SESSION),
        "look_session": link("look_session", **SESSION),
        "close_session": link("close_session", **SESSION),
        "revoke": link("revoke", **LOCK, expected_token="fencing_token"),
        "inspect": {
            "operationId": "inspect",
            "parameters": {field: f"$response.body#/{field}" for field in LOCK},
        },
    },
    ("/v1/locks/renew", "200"): {
        "renew": link("renew", **HELD),
        "release": link("release", **HELD),
    },
    ("/v1/sessions", "201"): {
        "acquire": link("acquire", **IN_SESSION),
        "keep_session": link("keep_session", **SESSION),
        "look_session": link("look_session", **SESSION),
        "close_session": link("close_session", **SESSION),
    },
    ("/v1/locks", "200"): {
        "list": {"operationId": "list", "parameters": {"cursor": "$response.body#/next_cursor"}},
    },
}


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Adds the links."""
    for (path, status), links in LINKS.items():
        for call in raw_schema["paths"][path].values():
            call["responses"][status]["links"] = links


# How often each call was answered with what.
COUNTS = collections.Counter()


@schemathesis.hook
def after_call(context, case, response):
    COUNTS[f"{case.operation.method.upper()} {case.operation.path}", response.status_code] += 1


@atexit.register
def write_counts():
    """Leaves the counts for whoever started the scan: a call, a status and a number a line."""
    path = os.environ.get("SCAN_COUNTS")
    if path and COUNTS:
        with open(path, "w", encoding="utf-8") as file:
            for (call, status), count in sorted(COUNTS.items()):
                file.write(f"{call}\t{status}\t{count}\n")
