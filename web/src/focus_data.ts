// Comparison of focus paradigms: types, and decoding of the recorded focus. Written by neural/report/focus_data.py.
//
// A focus model distributes its focus, weights that sum to 1, over the segments of an example. The foreground is
// the segments that decide the label. A tile is a segment that was recorded and is shown.

import { decodeBase64, lastIndexUpTo, type Interval } from "./run_data"

export interface FocusScore extends Interval {
  /** Of times to reach a target: seeds that reached it. `value` is the median, null if most never did. */
  reached?: number
  by_seed: (number | null)[]
}

export interface FocusCurve {
  steps: number[]
  value: (number | null)[]
  low: (number | null)[]
  high: (number | null)[]
}

/** Runs of one paradigm with one number of segments, which differ by their seed. */
export interface FocusGroup {
  paradigm: string
  segments: number
  seeds: number[]
  runs: string[]
  scores: Record<string, FocusScore>
  curves: Record<string, FocusCurve>
}

export interface FocusClaim {
  claim: string
  segments: number
  supported: "yes" | "no" | "undecided"
  number: Interval
  /** What the number is. */
  quantity: string
  evidence: string
  /** Corrected for all tests; null without a test. */
  p: number | null
  /** Whether the settings determine the number, so that it needs no test. */
  is_exact: boolean
}

export interface MosaicExample {
  /** Position among the validation examples. */
  index: number
  label: number
  /** Positions of the shown segments. */
  tiles: number[]
  foreground: number[]
  /** Base64 of the pixels of all tiles. */
  images: string
  words: string[] | null
}

export type ImageShape = [height: number, width: number, channels: number]

/** The recorded focus of one run. Weights are bytes [step, example, tile], probabilities [step, example]. */
export interface RecordedFocus {
  paradigm: string
  seed: number
  steps: number[]
  weights: string
  predicted: number[][]
  probability: string
}

export interface Mosaics {
  segments: number
  /** Number of recorded examples, of which `examples` are shown. */
  recorded: number
  image_shape: ImageShape | null
  examples: MosaicExample[]
  runs: Record<string, RecordedFocus>
}

export interface FocusData {
  /** What the scores are of. */
  data: "test" | "validation"
  /** Threshold of SAIF. */
  threshold: number | null
  classes: string[]
  /** What a segment is: picture, word or segment. */
  noun: string
  segment_counts: number[]
  /** Paradigm → its name and what it does. */
  descriptions: Record<string, { name: string; text: string }>
  groups: FocusGroup[]
  claims: FocusClaim[]
  /** The difference that the headline rests on, with its test; "" without a test. */
  headline_test: string
  /** Number of tests that p-values are corrected for. */
  tests: number
  warnings: string[]
  notes: string[]
  mosaics: Mosaics[]
}

/** The focus of a run on an example at one step. */
export interface ExampleFocus {
  step: number
  /** By tile. */
  weights: number[]
  /** Index of the predicted class. */
  predicted: number
  /** Its probability. */
  probability: number
}

/** Focus on the example at `position` at the last recorded step up to `step`, or the first. */
export function focusAt(
  recorded: RecordedFocus,
  examples: MosaicExample[],
  position: number,
  step: number,
): ExampleFocus {
  const index = Math.max(0, lastIndexUpTo(recorded.steps, step))
  const tileCount = Math.max(...examples.map((example) => example.tiles.length))
  const weights = decodeShares(recorded.weights)
  const count = weights.length / recorded.steps.length / examples.length
  const start = (index * examples.length + position) * count
  return {
    step: recorded.steps[index],
    weights: [...weights.subarray(start, start + Math.min(count, tileCount))]
      .slice(0, examples[position].tiles.length)
      .map((level) => level / 255),
    predicted: recorded.predicted[index][position],
    probability: decodeShares(recorded.probability)[index * examples.length + position] / 255,
  }
}

const decoded = new Map<string, Uint8Array>()

function decodeShares(base64: string): Uint8Array {
  let bytes = decoded.get(base64)
  if (!bytes) {
    bytes = decodeBase64(base64)
    decoded.set(base64, bytes)
  }
  return bytes
}

/** A share as ".89". */
export function formatShare(share: number): string {
  return share.toFixed(2).replace(/^0/, "")
}
