// Types of the page's data, and decoding. The keys are those of the JSON that neural/report/run_report.py writes.

import type { FigureData } from "./figure"
import type { FocusData } from "./focus_data"
import { mergeImage, type ProbeImage } from "./image_attention"
import { toMeasure, type Importance } from "./importance_data"
import type { Route } from "./route"

export interface Curve {
  steps: number[]
  values: (number | null)[]
}

export type Axes = "head" | "layer" | "pair"

/** Values of [step, layer, head], [step, layer] or [step, layer, layer], row-major; NaN: not measured. */
export interface Measure {
  unit: string
  description: string
  axes: Axes
  steps: number[]
  shape: number[]
  values: Float32Array
}

export interface Interval {
  value: number | null
  low: number | null
  high: number | null
  seeds?: number
}

export interface Finding {
  code: string
  claim: string
  supported: "yes" | "no" | "undecided"
  number: Interval
  unit: string
  /** The number with interval and unit, as text. */
  formatted: string
  evidence: string
  advice: string
  /** A claim is about trainings of this kind; a warning or a note is about the runs shown. */
  kind: "claim" | "warning" | "note"
  /** Place among the advice, from 1 (the most important); null if there is nothing to do about it. */
  advice_rank: number | null
  /** The picture of the finding; null if it has none. */
  figure: FigureData | null
  /** Views that show what the finding is about, such as one head at one step. */
  links: FindingLink[]
  /** Why there is no verdict: "needs 5 seeds, has 1"; the evidence says it if empty. */
  missing: string
}

export interface FindingLink {
  text: string
  route: Partial<Route>
}

/** Runs of one task on one data set, with one sentence about what they show. */
export interface Experiment {
  title: string
  task: string
  data: string
  /** The result in one sentence with its number. */
  headline: string
  /** More sentences; may be empty. */
  details: string[]
  figures: FigureData[]
  /** The view that shows more. */
  link: FindingLink | null
  /** If its runs are folds: a row per group, the best first. */
  cross_validation?: CrossValidation | null
  /** Labels of its groups. */
  groups: string[]
  runs: string[]
  /** Comparison of paradigms, of experiments of the task `focus`. */
  focus?: FocusData
}

/** Scores of a cross-validation by group and fold, means over seeds. */
export interface CrossValidation {
  metric: string
  /** Number of folds. */
  folds: number
  rows: {
    label: string
    /** Score of each fold; null if it has none yet. */
    folds: (number | null)[]
    /** Number of seeds of a fold. */
    seeds: number
    estimate: Interval
    /** Against the first row; null for the first row itself. */
    comparison: {
      verdict: "better" | "worse" | "undecided"
      difference: Interval
      p: number | null
    } | null
  }[]
}

/** Best validation scores of the runs of a group. */
export interface GroupScore {
  /** The monitored metric: `valid/loss`. */
  name: string
  larger_is_better: boolean
  /** Mean with its 95 % interval, over seeds or over folds. */
  estimate: Interval
  /** Smallest and largest score of a run. */
  low: number
  high: number
  /** Number of folds of a cross-validation, or null. */
  folds: number | null
}

/** Runs that differ only by their seed, or by the fold of a cross-validation. */
export interface Group {
  label: string
  data: string
  runs: string[]
  /** Null before the first validation; the board has none. */
  score?: GroupScore | null
  findings: Finding[]
}

export interface BestScore {
  step: number
  score: number
  name: string
  scores: Record<string, number | null>
}

export interface RunSummary {
  id: string
  name: string
  state: string
  step: number
  steps: number | null
  started: number | null
  time: number | null
  message: string
  best: BestScore | null
  seed?: number | null
  /** The fold of a cross-validation that the run holds out: `2/5`. */
  fold?: string | null
}

export interface Reliability {
  counts: number[]
  mean_probability: number[]
  observed_frequency: number[]
  low: number[]
  high: number[]
  edges: number[]
  all_counts: number[]
}

/** A binary question whose probabilities were calibrated. */
export interface CalibratedQuestion {
  chosen: string
  why: string
  elements?: number
  documents?: number
  /** What the intervals are computed over. */
  interval_basis?: string
  diagrams: Record<string, Reliability>
  methods: Record<string, Record<string, Interval>>
}

export interface Calibration {
  data: string
  threshold: number
  f1: number
  questions: Record<string, CalibratedQuestion>
}

/** A validation document with its texts; the texts of a long document are cut. */
export interface ShownDocument {
  /** Index into `lengths` and `boundaries`. */
  document: number
  name: string
  texts: string[]
  /** Indices of true labels, if labels are the target. */
  labels?: number[]
}

/** Validation documents of a segmentation run and their predictions at its best validation. */
export interface SegmentationData {
  step: number
  /** Number of validation documents; a very large set is recorded in part. */
  documents: number
  /** Number of elements of each recorded document. */
  lengths: number[]
  /** Elements of each document at which a segment begins. */
  boundaries: number[][]
  /** Names of the labels; empty if boundaries are the target. */
  labels: string[]
  shown: ShownDocument[]
  /** Uncalibrated (`none`) and, after `neural calibrate`, calibrated. */
  predictions: {
    method: string
    threshold: number
    /** Base64 of 32-bit floats: all documents one after the other. */
    data: string
  }[]
  /** Indices of predicted labels of the shown documents; empty if boundaries are the target. */
  predicted_labels: number[][]
}

/** Segmentation of a run whose documents are those of another run of the page. */
export type SharedSegmentationData = Pick<
  SegmentationData,
  "step" | "predictions" | "predicted_labels"
> & { documents_of: string }

/** Scores of the newest `neural evaluate`. */
export interface Evaluation {
  time: number
  /** What was scored: `180 validation examples of digits`. */
  data: string
  /** The most important one first. */
  scores: { name: string; value: number; low: number | null; high: number | null }[]
}

export interface RunEvent {
  step: number
  kind: string
  text: string
  time: number
}

/** A section that the task adds to the page of its runs. */
export interface Section {
  title: string
  text: string
  table_head: string[]
  table_rows: (string | number | null)[][]
}

/** Tokens of the rows and columns of a map. */
export interface AxisLabels {
  queries: string[]
  keys: string[]
}

/** Queries and keys of all heads of a layer: base64 of 16-bit integers, which are multiples of a scale. */
export interface HeadVectors {
  /** Query heads, key heads (fewer with grouped-query attention), queries, keys, head width. */
  shape: [heads: number, keyHeads: number, queries: number, keys: number, width: number]
  queries: string
  keys: string
  query_scale: number
  key_scale: number
  /** Factor of the dot products in the softmax. */
  score_scale: number
}

export interface Run extends RunSummary {
  seed: number | null
  settings: Record<string, unknown>
  /** Keys of the settings that differ from their default. */
  changed_settings: string[]
  network: {
    name?: string
    input_shape?: string
    output_shape?: string
    parameters?: number | null
  }
  program: string | null
  environment: Record<string, unknown>
  notes: string[]
  scalars: Record<string, Curve>
  measures: Record<string, Measure>
  layers: string[]
  heads: number[]
  map_steps: number[]
  /** Step → how many positions were pooled into a cell of its maps, to keep the page small. */
  downsampling: Record<string, number>
  labels: AxisLabels | null
  /** Layer → labels of its maps, if layers differ; empty for an axis without labels. */
  layer_labels?: Record<string, AxisLabels> | null
  /** The image that a vision transformer reads, with the weights of CLS. */
  image?: ProbeImage | null
  /** Role of every head by layer, such as "previous token"; "" where a layer has fewer heads. */
  roles?: string[][] | null
  /** Score of every head's role at the end, as a multiple of its threshold; null without a role. */
  role_strengths?: (number | null)[][] | null
  /** Step since which every head has its role; null for heads without a role. */
  role_onsets?: (number | null)[][] | null
  /** Layer → queries and keys of the example that the maps show, at `vector_step`. */
  vectors?: Record<string, HeadVectors> | null
  vector_step?: number | null
  /** Steps at which the focus on a few examples was recorded. */
  example_steps?: number[]
  events: RunEvent[]
  checkpoints: { step: number; best: boolean; bytes: number }[]
  samples: { step: number; text: string }[]
  /** Score of samples → its value for real text. */
  real_text: Record<string, number | null>
  /** Score of samples → description. */
  scores?: Record<string, string>
  calibration: Calibration | null
  /** Change of the loss when a head is removed, over training; of runs after `neural ablate`. */
  importance?: Importance | null
  evaluation?: Evaluation | null
  /** Of runs of the task `segmentation` that recorded their validation documents. */
  segmentation?: SegmentationData | SharedSegmentationData | null
  sections: Section[]
}

export interface Index {
  title: string
  kind: "report" | "snapshot" | "board"
  runs: RunSummary[]
  groups: Group[]
  /** Cards of the first view. The board has none. */
  experiments?: Experiment[]
}

/** A curve as in the JSON: evenly spaced steps, and values as base64 of 32-bit floats, take less space. */
export interface EncodedCurve {
  steps: number[] | { start: number; every: number; count: number }
  values: (number | null)[] | string
}

/** A run as in the JSON: values of measures are base64 of 32-bit floats. */
export type EncodedRun = Omit<Run, "measures" | "scalars"> & {
  measures: Record<string, Omit<Measure, "values"> & { data: string }>
  scalars: Record<string, EncodedCurve>
}

export function decodeBase64(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}

/** A run with its measures. Their values are decoded on first use: a page may have hundreds of runs. */
export function decodeRun(encoded: EncodedRun): Run {
  const measures: Record<string, Measure> = {}
  for (const [name, { data, ...rest }] of Object.entries(encoded.measures)) {
    let decoded: Float32Array | null = null
    measures[name] = {
      ...rest,
      get values() {
        decoded ??= new Float32Array(decodeBase64(data).buffer)
        return decoded
      },
    }
  }
  const { importance } = encoded
  if (importance && String(importance.heads) === String(encoded.heads))
    measures.importance = toMeasure(importance)
  const scalars: Record<string, Curve> = {}
  for (const [name, curve] of Object.entries(encoded.scalars)) scalars[name] = decodeCurve(curve)
  return { ...encoded, measures, scalars }
}

export function decodeCurve({ steps, values }: EncodedCurve): Curve {
  return {
    steps: Array.isArray(steps)
      ? steps
      : Array.from({ length: steps.count }, (_, index) => steps.start + index * steps.every),
    values:
      typeof values === "string"
        ? Array.from(new Float32Array(decodeBase64(values).buffer), (value) =>
            Number.isFinite(value) ? value : null,
          )
        : values,
  }
}

/**
 * The newest step of all curves, -1 without any. In a running training, `run.step` may be ahead of
 * it: progress is reported before the rows of the same steps are written.
 */
export function lastRowStep(run: Run): number {
  return Math.max(-1, ...Object.values(run.scalars).map(({ steps }) => steps.at(-1) ?? -1))
}

/** Append the rows of an update; all other fields are taken from the update. */
export function mergeRun(known: Run, update: Run): Run {
  const scalars = { ...known.scalars }
  for (const [name, added] of Object.entries(update.scalars)) {
    const previous = scalars[name] ?? { steps: [], values: [] }
    const keptCount = previous.steps.filter((step) => step < (added.steps[0] ?? Infinity)).length
    scalars[name] = thinCurve({
      steps: [...previous.steps.slice(0, keptCount), ...added.steps],
      values: [...previous.values.slice(0, keptCount), ...added.values],
    })
  }
  const measures = { ...known.measures }
  for (const [name, added] of Object.entries(update.measures)) {
    measures[name] = name in measures ? appendMeasure(measures[name], added) : added
  }
  return {
    ...update,
    scalars,
    measures,
    map_steps: mergeSorted([known.map_steps, update.map_steps]),
    // sent with the complete run only
    roles: update.roles ?? known.roles,
    role_strengths: update.role_strengths ?? known.role_strengths,
    role_onsets: update.role_onsets ?? known.role_onsets,
    vectors: update.vectors ?? known.vectors,
    importance: update.importance ?? known.importance,
    image: mergeImage(known.image, update.image),
    vector_step: update.vector_step ?? known.vector_step,
    events: mergeEvents([...known.events, ...update.events]),
  }
}

const MAX_CURVE_POINTS = 4000
const FULL_RESOLUTION_POINTS = 1000

/** Bounds the curves of long live runs: above the limit, every second of the older points is dropped. */
function thinCurve({ steps, values }: Curve): Curve {
  if (steps.length <= MAX_CURVE_POINTS) return { steps, values }
  const isKept = (_: unknown, index: number) =>
    index % 2 === 0 || index >= steps.length - FULL_RESOLUTION_POINTS
  return { steps: steps.filter(isKept), values: values.filter(isKept) }
}

function appendMeasure(previous: Measure, added: Measure): Measure {
  const size = countPerStep(previous)
  if (size !== countPerStep(added)) return added // the network changed: old values do not belong to it
  const keptCount = previous.steps.filter((step) => step < (added.steps[0] ?? Infinity)).length
  const values = new Float32Array(keptCount * size + added.values.length)
  values.set(previous.values.subarray(0, keptCount * size))
  values.set(added.values, keptCount * size)
  const steps = [...previous.steps.slice(0, keptCount), ...added.steps]
  return { ...added, steps, values, shape: [steps.length, ...added.shape.slice(1)] }
}

function mergeEvents(events: RunEvent[]): RunEvent[] {
  const unique = new Map(
    events.map((event) => [`${event.step} ${event.kind} ${event.time} ${event.text}`, event]),
  )
  return [...unique.values()].sort((a, b) => a.time - b.time)
}

/** How many values a measure has per step. */
export function countPerStep(measure: Measure): number {
  return measure.shape.slice(1).reduce((product, size) => product * size, 1)
}

/** Values of a measure at its last snapshot up to a step; null before the first. */
export function valuesAtStep(measure: Measure, step: number): Float32Array | null {
  const index = lastIndexUpTo(measure.steps, step)
  const size = countPerStep(measure)
  return index < 0 ? null : measure.values.subarray(index * size, (index + 1) * size)
}

/** Binary search: index of the last value ≤ `limit`; -1 if there is none. */
export function lastIndexUpTo(ascending: number[], limit: number): number {
  let low = 0
  let high = ascending.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (ascending[middle] <= limit) low = middle + 1
    else high = middle
  }
  return low - 1
}

export function mergeSorted(lists: number[][]): number[] {
  return [...new Set(lists.flat())].sort((a, b) => a - b)
}

/** All steps with maps or measures of attention, or with the focus on examples. */
export function snapshotSteps(run: Run): number[] {
  return mergeSorted([
    run.map_steps,
    run.example_steps ?? [],
    run.importance?.steps ?? [],
    ...Object.values(run.measures).map((measure) => measure.steps),
  ])
}

export function countHeads(run: Run, layer: number): number {
  const headMeasure = Object.values(run.measures).find((measure) => measure.axes === "head")
  return run.heads[layer] ?? headMeasure?.shape[2] ?? 0
}
