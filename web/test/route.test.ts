import assert from "node:assert/strict"
import { test } from "node:test"

import { formatRoute, parseRoute } from "../src/route"

test("formatting and parsing a route are inverse", () => {
  const route = { pane: "attention", run: "a & b=c#<d>", step: 500, layer: 2, head: 0 }
  assert.deepEqual(parseRoute(formatRoute(route)), route)
})

test("invalid parts of a hash are ignored", () => {
  assert.deepEqual(parseRoute(""), { pane: "" })
  assert.deepEqual(parseRoute("#/%E0%A4%A?step=-1&layer=x&head=3"), { pane: "", head: 3 })
})
