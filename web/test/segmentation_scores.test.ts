// Scores of a segmentation. segmentation_scores.json has those of Python, which
// tests/report/test_segmentation_data.py checks.

import assert from "node:assert/strict"
import test from "node:test"

import {
  classifyCuts,
  findBoundaries,
  matchBoundaries,
  probeDistance,
  scoreDocuments,
  splitDocuments,
} from "../src/segmentation_scores"
import expected from "./segmentation_scores.json"

const documents = expected.documents.map(({ truth, probabilities }) => ({
  length: probabilities.length,
  truth,
  probabilities: Float32Array.from(probabilities),
}))

test("scores are those of Python at every threshold", () => {
  for (const row of expected.scores) {
    const scores = scoreDocuments(documents, row.threshold)
    for (const [ours, theirs] of [
      [scores.f1, row.boundary_f1],
      [scores.f1Within1, row.boundary_f1_within_1],
      [scores.f1Within2, row.boundary_f1_within_2],
      [scores.pk, row.pk],
      [scores.windowDiff, row.window_diff],
    ])
      assert.ok(Math.abs(ours - theirs) < 1e-12, `${row.threshold}: ${ours} is not ${theirs}`)
  }
})

test("the thresholds of the table give different scores", () => {
  const f1 = expected.scores.map((row) => scoreDocuments(documents, row.threshold).f1)
  assert.equal(new Set(f1).size, f1.length)
})

test("F1 is the harmonic mean of precision and recall", () => {
  const { precision, recall, f1 } = scoreDocuments(documents, 0.25)
  assert.ok(Math.abs(f1 - (2 * precision * recall) / (precision + recall)) < 1e-12)
})

test("without any boundary, F1 is 1 and precision is unknown", () => {
  const empty = { length: 3, truth: [], probabilities: new Float32Array(3) }
  const scores = scoreDocuments([empty], 0.5)
  assert.equal(scores.f1, 1)
  assert.ok(Number.isNaN(scores.precision))
})

test("the first element is no boundary, and the threshold itself is not above it", () => {
  assert.deepEqual(findBoundaries([0.9, 0.5, 0.6], 0.5), [2])
})

test("the probe distance is rounded half to even, as Python does", () => {
  assert.equal(probeDistance(10, 2), 2) // 2.5
  assert.equal(probeDistance(14, 2), 4) // 3.5
  assert.equal(probeDistance(2, 1), 1)
})

test("every boundary is matched at most once", () => {
  assert.deepEqual(matchBoundaries([4], [3, 5], 1), [[4, 3]])
  assert.deepEqual(matchBoundaries([3, 5], [4], 1), [[3, 4]])
})

test("wrong boundaries near a missed one are near misses, the others false alarms", () => {
  const cuts = classifyCuts([3, 8, 20], [3, 10, 14, 19])
  const kinds = [...cuts].sort(([a], [b]) => a - b).map(([element, cut]) => [element, cut.kind])
  assert.deepEqual(kinds, [
    [3, "hit"],
    [8, "near miss"],
    [10, "near miss"],
    [14, "false alarm"],
    [19, "near miss"],
    [20, "near miss"],
  ])
  assert.equal(cuts.get(10)?.offset, 2)
  assert.equal(cuts.get(19)?.offset, -1)
  assert.equal(cuts.get(8)?.isPredicted, false)
})

test("a boundary beside a hit is a false alarm: the true one is found already", () => {
  assert.equal(classifyCuts([3], [3, 4]).get(4)?.kind, "false alarm")
  assert.equal(classifyCuts([3], []).get(3)?.kind, "missed")
})

test("probabilities are split by document", () => {
  const bytes = new Uint8Array(Float32Array.from([0, 0.25, 0, 0.5, 0.75]).buffer)
  const data = {
    step: 1,
    documents: 2,
    lengths: [2, 3],
    boundaries: [[1], [2]],
    labels: [],
    shown: [],
    predictions: [{ method: "none", threshold: 0.5, data: btoa(String.fromCharCode(...bytes)) }],
    predicted_labels: [],
  }
  const [first, second] = splitDocuments(data, 0)
  assert.deepEqual([...first.probabilities], [0, 0.25])
  assert.deepEqual([...second.probabilities], [0, 0.5, 0.75])
  assert.deepEqual(second.truth, [2])
})
