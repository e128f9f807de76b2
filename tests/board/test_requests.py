"""One job at a time; requests are validated."""

import asyncio
import json

import pytest
from pydantic import ValidationError

from neural.board.requests import (
    BUSY_MESSAGE,
    GenerateRequest,
    JobLock,
    SegmentRequest,
    format_validation_error,
)
from tests.board.test_event_stream import run_async


def count_forever():
    number = 0
    while True:
        yield {"number": number}
        number += 1


def test_a_second_job_is_refused_until_the_first_stream_is_closed():
    async def scenario():
        job_lock = JobLock()
        first = job_lock.stream_lines(count_forever)
        assert json.loads(await anext(first)) == {"number": 0}
        assert [json.loads(line) async for line in job_lock.stream_lines(count_forever)] == [
            {"error": BUSY_MESSAGE}
        ]
        assert json.loads(await anext(first)) == {"number": 1}
        await first.aclose()
        again = job_lock.stream_lines(lambda: iter([{"a": 1}]))
        assert [json.loads(line) async for line in again] == [{"a": 1}]

    run_async(scenario)


def test_an_error_is_the_last_line_and_releases_the_lock():
    def fail():
        yield {"a": 1}
        raise ValueError("the prompt is empty")

    async def scenario():
        job_lock = JobLock()
        for _ in range(2):
            lines = [json.loads(line) async for line in job_lock.stream_lines(fail)]
            assert lines == [{"a": 1}, {"error": "the prompt is empty"}]
        await asyncio.sleep(0)

    run_async(scenario)


@pytest.mark.parametrize(
    ("request_type", "body", "message"),
    [
        (
            GenerateRequest,
            {"run": "r", "prompt": "a", "tokens": 5_000},
            "tokens: input should be less than or equal to 1000",
        ),
        (GenerateRequest, {"prompt": "a"}, "run: field required"),
        (SegmentRequest, {"text": "a", "threshold": 1}, "threshold: input should be less than 1"),
        (SegmentRequest, {"text": "a", "where": "/etc"}, "where: extra inputs are not permitted"),
    ],
)
def test_a_validation_error_names_the_key(request_type, body, message):
    with pytest.raises(ValidationError) as error:
        request_type.model_validate(body)
    assert message in format_validation_error(error.value)
