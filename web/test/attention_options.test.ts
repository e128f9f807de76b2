import assert from "node:assert/strict"
import { test } from "node:test"

import { formatHeads, parseOptions } from "../src/attention_options"

test("options of an address without any are the map of one head", () => {
  assert.deepEqual(parseOptions({ pane: "attention" }), {
    view: "map",
    scope: "head",
    combination: "mean",
    direction: "queries",
    minus: null,
    colours: "square root",
  })
})

test("options are read from the address; unknown ones are ignored", () => {
  const route = { pane: "attention", view: "lines", heads: "all-maximum", minus: "0" }
  const options = parseOptions({ ...route, direction: "keys", colours: "linear" })
  assert.deepEqual(
    [options.view, options.scope, options.combination, options.minus],
    ["lines", "all", "maximum", 0],
  )
  assert.equal(formatHeads(options.scope, options.combination), "all-maximum")
  assert.equal(parseOptions({ pane: "", view: "toString", minus: "x" }).view, "map")
  assert.equal(parseOptions({ pane: "", minus: "x" }).minus, null)
})

test("a colour each is for lines only: a map of several heads is their mean", () => {
  const route = { pane: "attention", heads: "layer-each" }
  assert.equal(parseOptions({ ...route, view: "lines" }).combination, "each")
  assert.equal(parseOptions(route).combination, "mean")
})
