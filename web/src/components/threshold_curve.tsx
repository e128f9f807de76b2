// Precision, recall and F1 of boundaries over all thresholds, with the current one marked.

import { useMemo } from "preact/hooks"

import type { ScoredDocument } from "../segmentation_scores"

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [320, 150, 28, 58, 6, 32]
const POINTS = 200
const MIN_LABEL_GAP = 12

interface CurvePoint {
  threshold: number
  precision: number
  recall: number
  f1: number
}

const CURVES: [key: "precision" | "recall" | "f1", label: string][] = [
  ["precision", "precision"],
  ["recall", "recall"],
  ["f1", "F1"],
]

export function ThresholdCurve({
  documents,
  threshold,
  stored,
}: {
  documents: ScoredDocument[]
  threshold: number
  stored: number
}) {
  const points = useMemo(() => sampleThresholds(documents), [documents])
  const toX = (value: number) => LEFT + value * (WIDTH - LEFT - RIGHT)
  const toY = (value: number) => TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)
  const labelled = placeLabels(points, toY)
  return (
    <svg
      class="threshold-curve"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label="precision, recall and F1 over the threshold, all documents"
    >
      {[0, 0.5, 1].map((share) => (
        <g key={share} class="grid">
          <line x1={toX(0)} x2={toX(1)} y1={toY(share)} y2={toY(share)} />
          <text x={LEFT - 5} y={toY(share) + 3.5} text-anchor="end">
            {share}
          </text>
          <text x={toX(share)} y={HEIGHT - BOTTOM + 14} text-anchor="middle">
            {share}
          </text>
        </g>
      ))}
      <line class="stored-line" x1={toX(stored)} x2={toX(stored)} y1={toY(0)} y2={toY(1)} />
      {CURVES.map(([key]) => (
        <path key={key} class={key} d={drawPath(points, key, toX, toY)} />
      ))}
      <line class="current-line" x1={toX(threshold)} x2={toX(threshold)} y1={toY(0)} y2={toY(1)} />
      {labelled.map(({ key, label, y }) => (
        <text key={key} class={key} x={toX(1) + 5} y={y + 3.5}>
          {label}
        </text>
      ))}
      <text x={toX(0.5)} y={HEIGHT - 3} text-anchor="middle" class="axis">
        threshold, all documents
      </text>
    </svg>
  )
}

/** Scores at evenly spaced thresholds, from sorted probabilities: the number of elements above each. */
function sampleThresholds(documents: ScoredDocument[]): CurvePoint[] {
  const all: number[] = []
  const ofTrue: number[] = []
  for (const { truth, probabilities } of documents) {
    for (let element = 1; element < probabilities.length; element++)
      all.push(probabilities[element])
    for (const element of truth) ofTrue.push(probabilities[element])
  }
  all.sort((a, b) => a - b)
  ofTrue.sort((a, b) => a - b)
  return Array.from({ length: POINTS - 1 }, (_, index) => {
    const threshold = (index + 1) / POINTS
    const predicted = countAbove(all, threshold)
    const hits = countAbove(ofTrue, threshold)
    const total = predicted + ofTrue.length
    return {
      threshold,
      precision: predicted ? hits / predicted : NaN,
      recall: ofTrue.length ? hits / ofTrue.length : NaN,
      f1: total ? (2 * hits) / total : 1,
    }
  })
}

/** How many of the ascending values are above the limit. */
function countAbove(ascending: number[], limit: number): number {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (ascending[middle] <= limit) low = middle + 1
    else high = middle
  }
  return ascending.length - low
}

function drawPath(
  points: CurvePoint[],
  key: "precision" | "recall" | "f1",
  toX: (value: number) => number,
  toY: (value: number) => number,
): string {
  return points
    .filter((point) => Number.isFinite(point[key]))
    .map(
      (point, index) =>
        `${index ? "L" : "M"}${toX(point.threshold).toFixed(1)} ${toY(point[key]).toFixed(1)}`,
    )
    .join("")
}

/** Labels at the ends of the curves, moved apart so that they do not overlap. */
function placeLabels(points: CurvePoint[], toY: (value: number) => number) {
  const labels = CURVES.map(([key, label]) => {
    const last = points.findLast((point) => Number.isFinite(point[key]))
    return { key, label, y: toY(last ? last[key] : 0) }
  }).sort((a, b) => a.y - b.y)
  for (let index = 1; index < labels.length; index++)
    labels[index].y = Math.max(labels[index].y, labels[index - 1].y + MIN_LABEL_GAP)
  // those that are now below the axis move up again, and with them those above
  let limit = toY(0)
  for (const entry of labels.toReversed()) {
    entry.y = Math.min(entry.y, limit)
    limit = entry.y - MIN_LABEL_GAP
  }
  return labels
}
