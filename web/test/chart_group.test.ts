import assert from "node:assert/strict"
import { test } from "node:test"

import { ChartGroup } from "../src/chart_group"

test("a click hides a line, a second one shows it", () => {
  const reported: string[][] = []
  const group = new ChartGroup(({ hidden }) => reported.push([...hidden]))
  group.toggle("a")
  group.toggle("b")
  group.toggle("a")
  assert.deepEqual(reported, [["a"], ["a", "b"], ["b"]])
})

test("a zoom keeps hidden lines hidden, and a restored state is not reported", () => {
  let reports = 0
  const group = new ChartGroup(() => reports++)
  group.restore([1, 2], new Set(["a"]))
  assert.equal(reports, 0)
  group.zoom([3, 4])
  assert.deepEqual([group.range, [...group.hidden], reports], [[3, 4], ["a"], 1])
})

test("solo leaves one line, and again all", () => {
  const group = new ChartGroup()
  group.toggle("a")
  group.solo("a", ["a", "b", "c"])
  assert.deepEqual([...group.hidden], ["b", "c"])
  group.solo("a", ["a", "b", "c"])
  assert.deepEqual([...group.hidden], [])
})

test("charts are told a step once", () => {
  const group = new ChartGroup()
  let calls = 0
  const unsubscribe = group.subscribe(() => calls++)
  group.point(3)
  group.point(3)
  group.point(null)
  unsubscribe()
  group.point(4)
  assert.equal(calls, 2)
})
