import assert from "node:assert/strict"
import { test } from "node:test"

import { formatRunIds, parseComparedRuns } from "../../src/board/compared_runs"

test("ids with any characters survive the route", () => {
  const ids = ["a,b", "sweep/run", "<img>", "50%"]
  assert.deepEqual(parseComparedRuns({ pane: "compare", with: formatRunIds(ids) }), ids)
  assert.deepEqual(parseComparedRuns({ pane: "compare" }), [])
  assert.equal(formatRunIds([]), undefined)
})
