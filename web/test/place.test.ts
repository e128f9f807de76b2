import assert from "node:assert/strict"
import { test } from "node:test"

import { hashOf, parsePlace } from "../src/place"

test("an address says what is shown, and what is shown gives the address back", () => {
  const place = { pane: "attention", run: "a & b=c#<d>", step: 500, layer: 2, head: 0 }
  assert.deepEqual(parsePlace(hashOf(place)), place)
})

test("an address that makes no sense leads nowhere in particular", () => {
  assert.deepEqual(parsePlace(""), { pane: "" })
  assert.deepEqual(parsePlace("#/%E0%A4%A?step=-1&layer=x&head=3"), { pane: "", head: 3 })
})
