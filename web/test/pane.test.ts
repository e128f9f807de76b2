import assert from "node:assert/strict"
import { test } from "node:test"

import boardPanes from "panes:../src/board/panes"
import reportPanes from "panes:../src/panes"
import { sortPanes } from "../src/pane"
import type { Index } from "../src/run_data"

const panes = [...reportPanes, ...boardPanes]

test("every pane has what a tab needs", () => {
  for (const pane of panes) {
    assert.match(pane.key, /^[a-z_]+$/)
    assert.ok(pane.title, pane.key)
    assert.ok(Number.isFinite(pane.order), pane.key)
    assert.equal(typeof pane.component, "function", pane.key)
  }
})

test("every pane decides whether it applies before there is any run", () => {
  const index: Index = { title: "", kind: "board", runs: [], groups: [] }
  for (const pane of panes) assert.equal(typeof pane.applies({ run: null, index }), "boolean")
})

test("keys and positions are unique, so that addresses and tabs are", () => {
  assert.equal(new Set(panes.map((pane) => pane.key)).size, panes.length)
  assert.equal(new Set(panes.map((pane) => pane.order)).size, panes.length)
})

test("tabs are sorted by their order", () => {
  const orders = sortPanes(panes).map((pane) => pane.order)
  assert.deepEqual(
    orders,
    [...orders].sort((a, b) => a - b),
  )
})

test("the digest shows experiments, findings, losses, attention, calibration and samples", () => {
  const keys = panes.filter((pane) => pane.digest).map((pane) => pane.key)
  for (const key of ["overview", "findings", "curves", "attention", "calibration", "samples"])
    assert.ok(keys.includes(key), `${key} has no digest`)
})
