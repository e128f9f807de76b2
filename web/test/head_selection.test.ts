import assert from "node:assert/strict"
import { test } from "node:test"

import {
  arrangeHeads,
  countRoles,
  findFirstHead,
  findLaterOnset,
  getSelectedHead,
  listSortKeys,
} from "../src/head_selection"
import type { Measure, Run } from "../src/run_data"

function measure(values: number[], shape: number[]): Measure {
  const axes = "head" as const
  return { unit: "", description: "", axes, steps: [0], shape, values: Float32Array.from(values) }
}

/** A run with two layers of two heads. */
function createRun(extra: Partial<Run>): Run {
  return {
    layers: ["a", "b"],
    heads: [2, 2],
    measures: { relative_entropy: measure([0.9, 0.3, 0.8, NaN], [1, 2, 2]) },
    ...extra,
  } as Run
}

const ROLES = [
  ["uniform", "local"],
  ["mixed", "previous token"],
]

test("the page starts at the clearest role, or else at the most selective head", () => {
  assert.deepEqual(findFirstHead(createRun({})), [0, 1])
  const strengths = [
    [null, 1.2],
    [null, 1.5],
  ]
  assert.deepEqual(findFirstHead(createRun({ roles: ROLES, role_strengths: strengths })), [1, 1])
  assert.deepEqual(findFirstHead(createRun({ roles: ROLES })), [0, 1])
  // uniform and mixed are no roles
  const noRoles = [
    ["uniform", "mixed"],
    ["mixed", "uniform"],
  ]
  assert.deepEqual(findFirstHead(createRun({ roles: noRoles })), [0, 1])
  assert.deepEqual(findFirstHead(createRun({ measures: {} })), [0, 0])
})

test("the address decides, within the heads that exist", () => {
  const run = createRun({ roles: ROLES })
  assert.deepEqual(getSelectedHead(run, { pane: "attention", layer: 1, head: 0 }), [1, 0])
  assert.deepEqual(getSelectedHead(run, { pane: "attention", layer: 7, head: 9 }), [1, 1])
  assert.deepEqual(getSelectedHead(run, { pane: "attention", layer: 1 }), [1, 0])
})

test("heads are sorted by measure and role, and filtered by role", () => {
  const run = createRun({ roles: ROLES })
  assert.deepEqual(listSortKeys(run), ["layer", "role", "relative_entropy"])
  assert.deepEqual(arrangeHeads(run, "relative_entropy", "", Infinity), [
    [0, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ])
  assert.deepEqual(arrangeHeads(run, "role", "", Infinity), [
    [0, 1],
    [1, 1],
    [1, 0],
    [0, 0],
  ])
  assert.deepEqual(arrangeHeads(run, "layer", "previous token", Infinity), [[1, 1]])
})

test("roles are counted, real ones first", () => {
  const counts = countRoles(createRun({ roles: ROLES }), 0)
  assert.deepEqual(
    counts.map(({ role, heads }) => [role, heads]),
    [
      ["local", 1],
      ["previous token", 1],
      ["mixed", 1],
      ["uniform", 1],
    ],
  )
  assert.deepEqual(countRoles(createRun({ roles: null }), 0), [])
})

test("a head has its role from its onset on, and is counted from then on", () => {
  const run = createRun({
    roles: ROLES,
    role_onsets: [
      [null, 75],
      [null, 0],
    ],
  })
  const countAt = (step: number) =>
    Object.fromEntries(countRoles(run, step).map(({ role, headsAtStep }) => [role, headsAtStep]))
  assert.deepEqual(countAt(0), { local: 0, "previous token": 1, mixed: 1, uniform: 1 })
  assert.deepEqual(countAt(74), countAt(0))
  assert.deepEqual(countAt(75), { local: 1, "previous token": 1, mixed: 1, uniform: 1 })
  assert.deepEqual(countAt(Infinity), countAt(75))
  assert.equal(findLaterOnset(run, 0, [0, 1]), 75)
  assert.equal(findLaterOnset(run, 75, [0, 1]), null)
})

test("a role without an onset is shown at every step", () => {
  for (const role_onsets of [undefined, null, [], [[null, null]]]) {
    const run = createRun({ roles: ROLES, role_onsets })
    assert.equal(findLaterOnset(run, 0, [0, 1]), null)
    assert.ok(countRoles(run, 0).every(({ heads, headsAtStep }) => heads === headsAtStep))
  }
})
