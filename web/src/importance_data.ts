// Importance of heads over training: the change of the loss when a head is removed, with standard errors.

import { decodeBase64, lastIndexUpTo, type Measure } from "./run_data"
import type { HeadIndex } from "./head_selection"

/** Two heads that were removed together. */
export interface HeadPair {
  first: HeadIndex
  second: HeadIndex
  both: number | null
  both_se: number | null
  /** What both cost beyond the sum of each alone. */
  interaction: number | null
  interaction_se: number | null
  is_redundant: boolean
}

/** As in the JSON that neural/report/importance_data.py writes; arrays are base64 of 32-bit floats. */
export interface Importance {
  /** The examples: `64 validation windows of novel.txt`. */
  data: string
  metric: string
  unit: string
  /** How heads were removed. */
  method: string
  examples: number
  has_enough_examples: boolean
  chance_loss: number | null
  /** The command that measured it. */
  command: string
  /** Number of heads of each layer. */
  heads: number[]
  shape: [steps: number, layers: number, heads: number]
  steps: number[]
  loss: (number | null)[]
  loss_se: (number | null)[]
  /** Smallest change that counts; null if the model was never better than chance. */
  smallest_change: number | null
  /** Whether the model is better than chance at the end. */
  is_better_than_chance: boolean
  /** First-order estimate of the change. */
  gradient: string
  /** Classes of tokens; the first has all of them. */
  classes: { name: string; share: number | null; change: string; se: string }[]
  /** [layer][head]: step since which the head is necessary; null if it is not at the end. */
  onsets: (number | null)[][]
  /** [layer][head]: step since which a necessary head has half of its importance at the end. */
  half_onsets: (number | null)[][]
  /** [layer][head]: whether removing the head changes nothing at the end. */
  without_effect: boolean[][]
  pair_step: number | null
  pairs: HeadPair[]
  takeovers: { earlier: HeadIndex; later: HeadIndex; step: number }[]
}

/** Values of one class of tokens, [step, layer, head]. */
export interface ClassValues {
  name: string
  share: number | null
  change: Float32Array
  se: Float32Array
  gradient: Float32Array | null
}

const decoded = new WeakMap<Importance, Map<string, ClassValues>>()

/** The values of a class, decoded once; those of all tokens if there is no class of that name. */
export function decodeClass(importance: Importance, name: string | undefined): ClassValues {
  const classes = decoded.get(importance) ?? new Map<string, ClassValues>()
  decoded.set(importance, classes)
  const entry = importance.classes.find((entry) => entry.name === name) ?? importance.classes[0]
  const known = classes.get(entry.name)
  if (known) return known
  const values: ClassValues = {
    name: entry.name,
    share: entry.share,
    change: decodeFloats(entry.change),
    se: decodeFloats(entry.se),
    gradient: entry === importance.classes[0] ? decodeFloats(importance.gradient) : null,
  }
  classes.set(entry.name, values)
  return values
}

function decodeFloats(base64: string): Float32Array {
  return new Float32Array(decodeBase64(base64).buffer)
}

/** Position of a head in the arrays. */
export function cellIndex(importance: Importance, step: number, [layer, head]: HeadIndex): number {
  const [, layers, heads] = importance.shape
  return (step * layers + layer) * heads + head
}

/** All heads, those with the largest change at the last step first; heads without a number last. */
export function rankHeads(importance: Importance, values: ClassValues): HeadIndex[] {
  const last = importance.steps.length - 1
  const rank = (head: HeadIndex) => {
    const change = values.change[cellIndex(importance, last, head)]
    return Number.isFinite(change) ? change : -Infinity
  }
  return importance.heads
    .flatMap((count, layer) => Array.from({ length: count }, (_, head): HeadIndex => [layer, head]))
    .sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)))
}

/** Column of a step: the first measured one at or after it; null if there is none. */
export function findColumn(importance: Importance, step: number | null | undefined): number | null {
  if (step === null || step === undefined) return null
  const index = importance.steps.findIndex((measured) => measured >= step)
  return index < 0 ? null : index
}

/** Column that the slider shows: the last measured step up to it, or the first. */
export function currentColumn(importance: Importance, step: number | undefined): number {
  return Math.max(0, lastIndexUpTo(importance.steps, step ?? Infinity))
}

/** Importance as a measure of attention heads, so that other views can show and sort by it. */
export function toMeasure(importance: Importance): Measure {
  return {
    unit: importance.unit,
    description: `change of the ${importance.metric} when the head is removed; positive: it helps`,
    axes: "head",
    steps: importance.steps,
    shape: importance.shape,
    get values() {
      return decodeClass(importance, undefined).change
    },
  }
}

/** A change with its standard error, `0.41 ± 0.02 nats`; digits as its error needs. */
export function formatChange(
  change: number | null | undefined,
  error: number | null | undefined,
  unit = "",
  decimals = countDecimals(error ?? NaN),
): string {
  if (change === null || change === undefined || !Number.isFinite(change)) return "–"
  const suffix = unit ? ` ${unit}` : ""
  if (error === null || error === undefined || !Number.isFinite(error))
    return `${toMinus(change.toPrecision(3))}${suffix}`
  return `${toMinus(change.toFixed(decimals))} ± ${error.toFixed(decimals)}${suffix}`
}

/** An estimate without error of its own, with the digits of a measured value beside it. */
export function formatEstimate(value: number, decimals: number): string {
  return Number.isFinite(value) ? toMinus(value.toFixed(decimals)) : "–"
}

/** Decimals of a column of changes: those that the smallest error needs, at most four. */
export function countColumnDecimals(errors: (number | null)[]): number {
  const positive = errors.filter((error): error is number => error !== null && error > 0)
  return Math.min(4, countDecimals(Math.min(...positive)))
}

/** One digit of an error, two if it begins with 1. */
export function countDecimals(error: number): number {
  if (!(error > 0) || !Number.isFinite(error)) return 2
  const exponent = Math.floor(Math.log10(error))
  return Math.min(6, Math.max(0, (error < 2 * 10 ** exponent ? 1 : 0) - exponent))
}

function toMinus(text: string): string {
  return (/^-0\.?0*$/.test(text) ? text.slice(1) : text).replace("-", "−")
}
