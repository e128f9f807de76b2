// Scores of a segmentation, with the definitions of neural/tasks/segmentation/metrics/.
//
// An element is a sentence or line of a document. Boundaries are the indices, ascending, of the
// elements at which a segment begins; element 0 is none.

import { decodeBase64, type SegmentationData } from "./run_data"

/** A document with its probabilities. */
export interface ScoredDocument {
  /** Number of elements. */
  length: number
  truth: number[]
  /** P(a segment begins) of each element. */
  probabilities: Float32Array
}

export interface BoundaryScores {
  trueCount: number
  predictedCount: number
  hits: number
  /** NaN if nothing is predicted. */
  precision: number
  /** NaN if there is nothing to find. */
  recall: number
  f1: number
  f1Within1: number
  f1Within2: number
  pk: number
  windowDiff: number
}

/** A predicted boundary or a missed one. */
export type CutKind = "hit" | "near miss" | "false alarm" | "missed"

export interface Cut {
  kind: CutKind
  isTrue: boolean
  isPredicted: boolean
  /** Of a near miss: elements from the true boundary to the predicted one; negative if it is early. */
  offset: number
}

/** Distance in elements up to which a wrong boundary is a near miss. */
export const MAX_NEAR_DISTANCE = 2

export function splitDocuments(data: SegmentationData, prediction: number): ScoredDocument[] {
  const values = new Float32Array(decodeBase64(data.predictions[prediction].data).buffer)
  let start = 0
  return data.lengths.map((length, document) => {
    const probabilities = values.subarray(start, start + length)
    start += length
    return { length, truth: data.boundaries[document], probabilities }
  })
}

/** Elements whose probability is above the threshold; never the first. */
export function findBoundaries(probabilities: ArrayLike<number>, threshold: number): number[] {
  const boundaries: number[] = []
  for (let element = 1; element < probabilities.length; element++)
    if (probabilities[element] > threshold) boundaries.push(element)
  return boundaries
}

/** Scores of documents at a threshold. F1 is of all boundaries together, Pk and WindowDiff are means over documents. */
export function scoreDocuments(documents: ScoredDocument[], threshold: number): BoundaryScores {
  let [trueCount, predictedCount, pk, windowDiff] = [0, 0, 0, 0]
  const matches = [0, 0, 0] // exact, within 1 and within 2 elements
  for (const { length, truth, probabilities } of documents) {
    const predicted = findBoundaries(probabilities, threshold)
    trueCount += truth.length
    predictedCount += predicted.length
    for (let tolerance = 0; tolerance < matches.length; tolerance++)
      matches[tolerance] += matchBoundaries(truth, predicted, tolerance).length
    const wrong = countWrongProbes(length, truth, predicted)
    pk += wrong.pk
    windowDiff += wrong.windowDiff
  }
  const f1 = (hits: number) =>
    trueCount + predictedCount ? (2 * hits) / (trueCount + predictedCount) : 1
  return {
    trueCount,
    predictedCount,
    hits: matches[0],
    precision: matches[0] / predictedCount,
    recall: matches[0] / trueCount,
    f1: f1(matches[0]),
    f1Within1: f1(matches[1]),
    f1Within2: f1(matches[2]),
    pk: pk / documents.length,
    windowDiff: windowDiff / documents.length,
  }
}

/** Pairs (true, predicted) at most `tolerance` apart, greedy from left to right, which gives the most pairs. */
export function matchBoundaries(
  truth: number[],
  predicted: number[],
  tolerance: number,
): [number, number][] {
  const pairs: [number, number][] = []
  let [i, j] = [0, 0]
  while (i < truth.length && j < predicted.length) {
    const distance = truth[i] - predicted[j]
    if (distance > tolerance) j++
    else if (distance < -tolerance) i++
    else pairs.push([truth[i++], predicted[j++]])
  }
  return pairs
}

/** Shares of wrong probes of one document: pairs of elements at distance k. */
function countWrongProbes(
  length: number,
  truth: number[],
  predicted: number[],
): { pk: number; windowDiff: number } {
  if (length === 1) return { pk: 0, windowDiff: 0 }
  const distance = probeDistance(length, truth.length + 1)
  const [trueCounts, predictedCounts] = [cumulate(length, truth), cumulate(length, predicted)]
  let [pk, windowDiff] = [0, 0]
  for (let start = 0; start < length - distance; start++) {
    const inTruth = trueCounts[start + distance] - trueCounts[start]
    const inPrediction = predictedCounts[start + distance] - predictedCounts[start]
    if (inTruth > 0 !== inPrediction > 0) pk++
    if (inTruth !== inPrediction) windowDiff++
  }
  const probes = length - distance
  return { pk: pk / probes, windowDiff: windowDiff / probes }
}

/** k: half the mean true segment length, rounded half to even as Python does; 2 … length − 1. */
export function probeDistance(length: number, segments: number): number {
  return Math.min(Math.max(2, roundHalfToEven(length / (2 * segments))), length - 1)
}

function roundHalfToEven(value: number): number {
  const floor = Math.floor(value)
  if (value - floor !== 0.5) return Math.round(value)
  return floor % 2 === 0 ? floor : floor + 1
}

/** Number of boundaries up to each element. */
function cumulate(length: number, boundaries: number[]): Int32Array {
  const counts = new Int32Array(length)
  for (const boundary of boundaries) counts[boundary] = 1
  for (let element = 1; element < length; element++) counts[element] += counts[element - 1]
  return counts
}

/** True and predicted boundaries by element. A wrong boundary near a true one that was not found is a near miss. */
export function classifyCuts(truth: number[], predicted: number[]): Map<number, Cut> {
  const hits = new Set(matchBoundaries(truth, predicted, 0).map(([element]) => element))
  const missed = truth.filter((element) => !hits.has(element))
  const wrong = predicted.filter((element) => !hits.has(element))
  const near = matchBoundaries(missed, wrong, MAX_NEAR_DISTANCE)
  const cuts = new Map<number, Cut>()
  const add = (
    elements: Iterable<number>,
    kind: CutKind,
    isTrue: boolean,
    isPredicted: boolean,
  ) => {
    for (const element of elements) cuts.set(element, { kind, isTrue, isPredicted, offset: 0 })
  }
  add(missed, "missed", true, false)
  add(wrong, "false alarm", false, true)
  add(hits, "hit", true, true)
  for (const [trueElement, predictedElement] of near) {
    const offset = predictedElement - trueElement
    const pair = { kind: "near miss", offset } as const
    cuts.set(trueElement, { ...pair, isTrue: true, isPredicted: false })
    cuts.set(predictedElement, { ...pair, isTrue: false, isPredicted: true })
  }
  return cuts
}
