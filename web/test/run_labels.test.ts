// Names of runs in the selector.

import assert from "node:assert/strict"
import { test } from "node:test"

import type { Group, Index, RunSummary } from "../src/run_data"
import { labelExperiments, labelRuns } from "../src/run_labels"

function summarize(id: string, seed: number | null): RunSummary {
  const rest = { step: 1, steps: 1, started: null, time: null, message: "", best: null }
  return { id, name: id, state: "finished", seed, ...rest }
}

function buildIndex(runs: RunSummary[], groups: [label: string, data: string, ids: string[]][]) {
  return {
    title: "",
    kind: "report",
    runs,
    groups: groups.map(([label, data, ids]): Group => ({ label, data, runs: ids, findings: [] })),
  } satisfies Index
}

const A = "2026-11-17_14-42-38_characters"
const B = "2026-11-17_14-43-47_soft_seed-0"
const C = "2026-11-17_14-43-48_soft_seed-1"

test("a run is named by its experiment, and by its seed if there are several", () => {
  const index = buildIndex(
    [summarize(A, 0), summarize(B, 0), summarize(C, 1)],
    [
      ["handbook: characters", "handbook", [A]],
      ["digits: soft", "digits", [B, C]],
    ],
  )
  assert.deepEqual(
    [...labelRuns(index)],
    [
      [A, "characters"],
      [B, "soft, seed 0"],
      [C, "soft, seed 1"],
    ],
  )
})

test("runs with the same seed keep the names of their folders, so that names are unique", () => {
  const index = buildIndex([summarize(B, 0), summarize(C, 0)], [["soft", "digits", [B, C]]])
  const texts = [...labelRuns(index).values()]
  assert.equal(new Set(texts).size, 2)
  assert.ok(texts[0].includes(B))
})

test("every run is listed once, runs of no group too", () => {
  const index = buildIndex([summarize(A, 0), summarize(B, 0)], [["soft", "digits", [B]]])
  const listed = labelExperiments(index).flatMap((experiment) =>
    experiment.runs.map(({ id }) => id),
  )
  assert.deepEqual(listed.sort(), [A, B])
})

test("folds are told apart", () => {
  const runs = ["1/2", "2/2"].map((fold) => ({ id: fold, name: "a", seed: 0, fold }))
  const groups = [{ label: "iris", data: "flowers", runs: ["1/2", "2/2"], findings: [] }]
  const index = { title: "", kind: "report", runs, groups } as unknown as Index
  assert.deepEqual(
    [...labelRuns(index).values()],
    ["iris, fold 1/2, seed 0", "iris, fold 2/2, seed 0"],
  )
})
