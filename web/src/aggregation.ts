// Aggregation of curves over seeds: mean and standard error at the steps that all seeds have.

import { widenColourRange } from "./ticks"
import { countPerStep, type Curve, type Group, type Measure, type Run } from "./run_data"

export interface Line {
  label: string
  /** Identifies the line in all charts; the label may depend on the chart. */
  key?: string
  steps: number[]
  values: (number | null)[]
  low?: (number | null)[]
  high?: (number | null)[]
}

export function aggregateSeeds(label: string, curves: Curve[]): Line {
  if (curves.length === 1) return { label, ...curves[0] }
  const valuesByStep = curves.map(
    (curve) => new Map(curve.steps.map((step, index) => [step, curve.values[index]])),
  )
  const steps = curves[0].steps.filter((step) => valuesByStep.every((values) => values.has(step)))
  const line: Line & Required<Pick<Line, "low" | "high">> = {
    label: `${label} (${curves.length} seeds)`,
    steps,
    values: [],
    low: [],
    high: [],
  }
  for (const step of steps) {
    const present = valuesByStep
      .map((values) => values.get(step))
      .filter((value): value is number => typeof value === "number")
    if (present.length < valuesByStep.length) {
      for (const list of [line.values, line.low, line.high]) list.push(null)
      continue
    }
    const mean = present.reduce((sum, value) => sum + value, 0) / present.length
    const standardError = Math.sqrt(
      present.reduce((sum, value) => sum + (value - mean) ** 2, 0) /
        (present.length - 1) /
        present.length,
    )
    line.values.push(mean)
    line.low.push(mean - standardError)
    line.high.push(mean + standardError)
  }
  return line
}

/** One line per group of runs that have the curve; groups of several seeds get a band. */
export function aggregateGroups(
  groups: Group[],
  runs: Run[],
  getCurve: (run: Run) => Curve | null,
): Line[] {
  const lines: Line[] = []
  const runsById = new Map(runs.map((run) => [run.id, run]))
  for (const group of groups) {
    const groupRuns = group.runs.flatMap((id) => runsById.get(id) ?? [])
    const curves = groupRuns
      .map(getCurve)
      .filter((curve): curve is Curve => curve !== null && curve.steps.length > 0)
    if (curves.length) lines.push({ ...aggregateSeeds(group.label, curves), key: group.label })
  }
  return lines
}

/** Mean of a measure over layers and heads at every step. */
export function averageMeasure(measure: Measure): Curve {
  const size = countPerStep(measure)
  const values = measure.steps.map((_, index) =>
    finiteMean(measure.values.subarray(index * size, (index + 1) * size)),
  )
  return { steps: measure.steps, values }
}

/** Mean of the finite values; null if there are none. */
export function finiteMean(values: ArrayLike<number>): number | null {
  let sum = 0
  let count = 0
  for (let index = 0; index < values.length; index++) {
    if (!Number.isFinite(values[index])) continue
    sum += values[index]
    count++
  }
  return count ? sum / count : null
}

/**
 * Moving average over about `span` points; gaps stay gaps. It is centred, so that it does not lag behind
 * a falling loss. At the ends, where the window is cut, it follows the trend inside the window.
 */
export function smoothValues(values: (number | null)[], span: number): (number | null)[] {
  // the average of an average has a triangular window, which is smoother than a rectangular one
  const half = Math.round(span / 4)
  return half < 1 ? values : fitAround(fitAround(values, half), half)
}

/** Value of a line fitted to the `half` points before and after; in a whole window that is their mean. */
function fitAround(values: (number | null)[], half: number): (number | null)[] {
  const indices = values.flatMap((value, index) => (value === null ? [] : index))
  const [sums, moments] = [[0], [0]]
  indices.forEach((index, position) => {
    sums.push(sums[position] + values[index]!)
    moments.push(moments[position] + position * values[index]!)
  })
  const fitted: (number | null)[] = values.map(() => null)
  indices.forEach((index, position) => {
    const first = Math.max(0, position - half)
    const end = Math.min(indices.length, position + half + 1)
    const count = end - first
    const middle = (first + end - 1) / 2
    const sum = sums[end] - sums[first]
    const slope =
      count > 1
        ? (moments[end] - moments[first] - middle * sum) / ((count * (count * count - 1)) / 12)
        : 0
    fitted[index] = sum / count + slope * (position - middle)
  })
  return fitted
}

/** Smallest number of values for which noise can be told from a trend. */
const MIN_NOISY_POINTS = 20
/** Turns per value above which a curve is noisy; pure noise has 2/3, a schedule hardly any. */
const MIN_TURN_SHARE = 0.25

/** Whether a curve goes up and down from value to value. */
export function isNoisy(values: (number | null)[]): boolean {
  const finite = values.filter((value): value is number => value !== null)
  if (finite.length < MIN_NOISY_POINTS) return false
  let turns = 0
  for (let index = 2; index < finite.length; index++) {
    const [before, after] = [
      finite[index - 1] - finite[index - 2],
      finite[index] - finite[index - 1],
    ]
    if (before * after < 0) turns++
  }
  return turns / (finite.length - 2) > MIN_TURN_SHARE
}

/** Minimum and maximum over all steps, so that colours are comparable between steps. */
export function valueRange(measure: Measure): [number, number] {
  let [low, high] = [Infinity, -Infinity]
  for (const value of measure.values) {
    if (!Number.isFinite(value)) continue
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return low <= high ? [low, high] : [NaN, NaN]
}

/** The range for colours: never so narrow that rounding errors use the whole scale. */
export function colourRange(measure: Measure): [number, number] {
  return widenColourRange(...valueRange(measure), measure.unit)
}
