import assert from "node:assert/strict"
import { test } from "node:test"

import { shortenText, widestText } from "../../src/draw/text"

/** As if every character were 6 pixels wide. */
const measure = (text: string) => 6 * [...text].length

test("a text that fits is not changed, a longer one gets an ellipsis and fits", () => {
  assert.equal(shortenText("cat", 18, measure), "cat")
  assert.equal(shortenText("characteristically", 42, measure), "charac…")
  assert.equal(shortenText("cat", 2, measure), "…")
  assert.ok(measure(shortenText("x".repeat(10_000), 60, measure)) <= 60)
})

test("characters outside of the basic plane are not cut in half", () => {
  assert.equal(shortenText("👩👩👩👩", 18, measure), "👩👩…")
  assert.equal(widestText(["a", "abc"], measure), 18)
})
