"""One text at a time; what is asked for is checked."""

import asyncio
import json

import pytest
from pydantic import ValidationError

from neural.views.board.asked import BUSY, Desk, ToCut, ToWrite, complaint
from tests.views.board.test_live import played


def endless():
    number = 0
    while True:
        yield {"number": number}
        number += 1


def test_a_second_text_is_told_to_wait_and_a_page_that_is_closed_frees_the_desk():
    async def scene():
        desk = Desk()
        first = desk.lines(endless)
        assert json.loads(await anext(first)) == {"number": 0}
        assert [json.loads(line) async for line in desk.lines(endless)] == [{"error": BUSY}]
        assert json.loads(await anext(first)) == {"number": 1}
        await first.aclose()
        again = desk.lines(lambda: iter([{"a": 1}]))
        assert [json.loads(line) async for line in again] == [{"a": 1}]

    played(scene)


def test_what_goes_wrong_is_the_last_line_and_the_desk_is_free_again():
    def wrong():
        yield {"a": 1}
        raise ValueError("the prompt is empty")

    async def scene():
        desk = Desk()
        for _ in range(2):
            said = [json.loads(line) async for line in desk.lines(wrong)]
            assert said == [{"a": 1}, {"error": "the prompt is empty"}]
        await asyncio.sleep(0)

    played(scene)


@pytest.mark.parametrize(("kind", "said", "words"), [
    (ToWrite, {"run": "r", "prompt": "a", "tokens": 5_000}, "tokens: input should be less than or equal to 1000"),
    (ToWrite, {"prompt": "a"}, "run: field required"),
    (ToCut, {"text": "a", "threshold": 1}, "threshold: input should be less than 1"),
    (ToCut, {"text": "a", "where": "/etc"}, "where: extra inputs are not permitted"),
])  # fmt: skip
def test_a_mistake_is_told_with_its_place(kind, said, words):
    with pytest.raises(ValidationError) as wrong:
        kind.model_validate(said)
    assert words in complaint(wrong.value)
