"""Schemathesis reads the description, makes requests from it, and compares the answers with it."""

from collections.abc import Iterator

import pytest
import schemathesis
from http_service import Served, served
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from agents.interfaces import tokens
from agents.interfaces.http.endpoints import description

pytestmark = pytest.mark.long

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]

# What does not fit may be too large as well.
REFUSED = [400, 401, 404, 409, 413, 415, 422]
CONFIG = SchemathesisConfig.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}
)

schema = schemathesis.openapi.from_dict(description(16_384), config=CONFIG)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http") / "bank") as running:
        yield running


@pytest.fixture(scope="module")
def token(service: Served) -> str:
    return tokens.create(service.folder, "alice", "advance").token


@schema.parametrize()
@settings(
    max_examples=25, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_every_answer_is_as_described(case: Case, service: Served, token: str) -> None:
    case.call_and_validate(
        base_url=service.url, headers={"Authorization": f"Bearer {token}"}, checks=CHECKS
    )
