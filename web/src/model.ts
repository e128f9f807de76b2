// What a page draws: runs as plain data, decoded. Written by neural/report.py.

export interface Curve {
  steps: number[]
  values: (number | null)[]
}

export type Axes = "head" | "layer" | "pair"

/** Values of [step, layer, head], [step, layer] or [step, layer, layer], the last axis first to move; NaN: not measured. */
export interface Measure {
  unit: string
  says: string
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
  figure: string
  evidence: string
  advice: string
  /** A claim is about trainings of this kind; a warning or a note is about these very runs. */
  kind: "claim" | "warning" | "note"
}

/** Runs that differ by their seed alone. */
export interface Group {
  label: string
  data: string
  runs: string[]
  findings: Finding[]
}

export interface Best {
  step: number
  score: number
  name: string
  scores: Record<string, number | null>
}

export interface Brief {
  id: string
  name: string
  state: string
  step: number
  steps: number | null
  started: number | null
  time: number | null
  message: string
  best: Best | null
}

export interface Reliability {
  counts: number[]
  said: number[]
  true: number[]
  low: number[]
  high: number[]
  edges: number[]
  everything: number[]
}

/** One question whose probabilities were calibrated. */
export interface Calibrated {
  chosen: string
  why: string
  diagrams: Record<string, Reliability>
  methods: Record<string, Record<string, Interval>>
}

export interface Calibration {
  data: string
  threshold: number
  f1: number
  questions: Record<string, Calibrated>
}

export interface RunEvent {
  step: number
  kind: string
  text: string
  time: number
}

export interface Run extends Brief {
  seed: number | null
  settings: Record<string, unknown>
  changed: string[]
  network: { name?: string; takes?: string; gives?: string; parameters?: number | null }
  program: string | null
  environment: Record<string, unknown>
  remarks: string[]
  scalars: Record<string, Curve>
  measures: Record<string, Measure>
  layers: string[]
  heads: number[]
  map_steps: number[]
  /** Of maps that were made coarser to keep the page small: how many positions a cell stands for. */
  pooled: Record<string, number>
  labels: { queries: string[]; keys: string[] } | null
  events: RunEvent[]
  checkpoints: { step: number; best: boolean; bytes: number }[]
  samples: { step: number; text: string }[]
  real: Record<string, number | null>
  /** What the scores of samples say, by measure. */
  scores?: Record<string, string>
  calibration: Calibration | null
}

export interface Index {
  title: string
  kind: "report" | "look" | "board"
  runs: Brief[]
  groups: Group[]
}

/** A run as JSON has it: measures still as text. */
export type WrittenRun = Omit<Run, "measures"> & {
  measures: Record<string, Omit<Measure, "values"> & { data: string }>
}

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}

export function decodeRun(written: WrittenRun): Run {
  const measures: Record<string, Measure> = {}
  for (const [name, { data, ...rest }] of Object.entries(written.measures)) {
    measures[name] = { ...rest, values: new Float32Array(bytesOf(data).buffer) }
  }
  return { ...written, measures }
}

/** A run and what came after it: rows are added, everything else is as the news say. */
export function mergeRun(old: Run, news: Run): Run {
  const scalars = { ...old.scalars }
  for (const [name, more] of Object.entries(news.scalars)) {
    const before = scalars[name] ?? { steps: [], values: [] }
    const kept = before.steps.filter((step) => step < (more.steps[0] ?? Infinity)).length
    scalars[name] = thinned({
      steps: [...before.steps.slice(0, kept), ...more.steps],
      values: [...before.values.slice(0, kept), ...more.values],
    })
  }
  const measures = { ...old.measures }
  for (const [name, more] of Object.entries(news.measures)) {
    measures[name] = name in measures ? joined(measures[name], more) : more
  }
  return {
    ...news,
    scalars,
    measures,
    map_steps: sortedUnion([old.map_steps, news.map_steps]),
    events: sortedEvents([...old.events, ...news.events]),
  }
}

const MOST = 4000
const NEWEST = 1000

/** A curve that grows for days: of all but the newest rows every second one goes, whenever there are too many. */
function thinned({ steps, values }: Curve): Curve {
  if (steps.length <= MOST) return { steps, values }
  const stays = (_: unknown, at: number) => at % 2 === 0 || at >= steps.length - NEWEST
  return { steps: steps.filter(stays), values: values.filter(stays) }
}

function joined(before: Measure, more: Measure): Measure {
  const size = cells(before)
  if (size !== cells(more)) return more // the network changed: what was is another one's
  const kept = before.steps.filter((step) => step < (more.steps[0] ?? Infinity)).length
  const values = new Float32Array(kept * size + more.values.length)
  values.set(before.values.subarray(0, kept * size))
  values.set(more.values, kept * size)
  const steps = [...before.steps.slice(0, kept), ...more.steps]
  return { ...more, steps, values, shape: [steps.length, ...more.shape.slice(1)] }
}

function sortedEvents(events: RunEvent[]): RunEvent[] {
  const once = new Map(events.map((one) => [`${one.step} ${one.kind} ${one.time} ${one.text}`, one]))
  return [...once.values()].sort((a, b) => a.time - b.time)
}

/** How many numbers a measure has at a step. */
export function cells(measure: Measure): number {
  return measure.shape.slice(1).reduce((product, size) => product * size, 1)
}

/** All numbers of a measure at the last look up to a step; null before the first. */
export function valuesAt(measure: Measure, step: number): Float32Array | null {
  const at = lastUpTo(measure.steps, step)
  const size = cells(measure)
  return at < 0 ? null : measure.values.subarray(at * size, (at + 1) * size)
}

/** The index of the last of ascending numbers that is not above the limit; -1 where there is none. */
export function lastUpTo(ascending: number[], limit: number): number {
  let low = 0
  let high = ascending.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (ascending[middle] <= limit) low = middle + 1
    else high = middle
  }
  return low - 1
}

export function sortedUnion(lists: number[][]): number[] {
  return [...new Set(lists.flat())].sort((a, b) => a - b)
}

/** Every step at which attention was looked at. */
export function lookedAt(run: Run): number[] {
  return sortedUnion([run.map_steps, ...Object.values(run.measures).map((one) => one.steps)])
}

export function headsOf(run: Run, layer: number): number {
  const some = Object.values(run.measures).find((one) => one.axes === "head")
  return run.heads[layer] ?? some?.shape[2] ?? 0
}
