// One metric of several runs over steps. Runs that differ only by their seed become one line with a band.

import { useMemo } from "preact/hooks"

import { aggregateGroups, averageMeasure, smoothValues, type Line } from "../aggregation"
import { lineColour } from "../draw/colours"
import { formatName } from "../format"
import type { PaneProps } from "../pane"
import { snapshotSteps, type Curve, type Run } from "../run_data"
import { LineChart } from "./line_chart"

/** A curve called `attention/entropy` is the mean of the measure `entropy` over layers and heads. */
export const MEASURE_PREFIX = "attention/"
/** In points. */
const SMOOTHING_SPAN = 12

/** The runs of the same task as `run`: losses of different tasks are not comparable. */
export function filterSameTask(run: Run | null, runs: Run[]): Run[] {
  return run ? runs.filter((other) => other.settings.task === run.settings.task) : runs
}

/** One metric of all runs. */
export function CurveChart({
  runs,
  groups,
  route,
  navigate,
  theme,
  name,
  height,
}: PaneProps & { name: string; height?: number }) {
  const lines = useMemo(() => {
    const smooth = route.smooth === "y" && !name.startsWith(MEASURE_PREFIX)
    return aggregateGroups(groups, runs, (run) => findCurve(run, name)).map((line, index) => ({
      ...(smooth ? smoothLine(line) : line),
      colour: lineColour(index, theme),
    }))
  }, [runs, groups, name, theme, route.smooth])
  const measure = runs.map((run) => run.measures[name.slice(MEASURE_PREFIX.length)]).find(Boolean)
  const shownMeasure = name.startsWith(MEASURE_PREFIX) ? measure : undefined
  const steps = runs.length === 1 ? snapshotSteps(runs[0]) : []
  return (
    <LineChart
      title={shownMeasure ? formatName(name.slice(MEASURE_PREFIX.length)) : name}
      unit={shownMeasure?.unit}
      description={shownMeasure?.description}
      lines={lines}
      theme={theme}
      log={route.log === "y"}
      height={height}
      legend={lines.length > 1}
      step={steps.length ? route.step : undefined}
      onStep={(step) => navigate({ step })}
    />
  )
}

function findCurve(run: Run, name: string): Curve | null {
  if (!name.startsWith(MEASURE_PREFIX)) return run.scalars[name] ?? null
  const measure = run.measures[name.slice(MEASURE_PREFIX.length)]
  return measure ? averageMeasure(measure) : null
}

function smoothLine(line: Line): Line {
  const smoothBound = (values?: (number | null)[]) => values && smoothValues(values, SMOOTHING_SPAN)
  return {
    ...line,
    values: smoothValues(line.values, SMOOTHING_SPAN),
    low: smoothBound(line.low),
    high: smoothBound(line.high),
  }
}

/** Losses first, then the other validation metrics, then the rest by name. */
export function compareCurveNames(a: string, b: string): number {
  const rank = (name: string) =>
    name === "train/loss" ? 0 : name === "valid/loss" ? 1 : name.startsWith("valid/") ? 2 : 3
  return rank(a) - rank(b) || a.localeCompare(b)
}
