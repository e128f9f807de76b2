// One metric of several runs over steps. Runs that differ only by their seed become one line with a band.

import type { ComponentChild } from "preact"
import { useMemo } from "preact/hooks"

import { aggregateGroups, averageMeasure, isNoisy, smoothValues } from "../aggregation"
import type { ChartGroup } from "../chart_group"
import { LINE_COLOUR_COUNT, lineColour } from "../draw/colours"
import type { Table } from "../export"
import { formatName, stripDates } from "../format"
import type { PaneProps } from "../pane"
import type { Route } from "../route"
import { snapshotSteps, type Curve, type Group, type Run } from "../run_data"
import { labelRuns } from "../run_labels"
import type { Theme } from "../theme"
import { LineChart, type ChartLine } from "./line_chart"

/** A curve called `attention/entropy` is the mean of the measure `entropy` over layers and heads. */
export const MEASURE_PREFIX = "attention/"
/** Training curves are noisy; what is measured on held-out data is a result and stays as it is. */
const SMOOTHED_PREFIX = "train/"
export const MAX_SMOOTHING = 7
/** Lines with a colour of their own; further ones are faint. */
const MAX_COLOURED_LINES = 12
const FAINT_COLOURS: Record<Theme, string> = { light: "#56616f", dark: "#9aa6b6" }

/** The runs of the same task as `run`: losses of different tasks are not comparable. */
export function filterSameTask(run: Run | null, runs: Run[]): Run[] {
  return run ? runs.filter((other) => other.settings.task === run.settings.task) : runs
}

/** Strength of smoothing in the address, 0 … MAX_SMOOTHING: an average over about 2^strength points. */
export function readSmoothing(route: Route): number {
  const strength = Number(route.smooth)
  return strength > 0 ? Math.min(MAX_SMOOTHING, Math.round(strength)) : 0
}

interface Props extends PaneProps {
  name: string
  height?: number
  legend?: boolean
  group?: ChartGroup
  xRange?: [number, number]
  isWide?: boolean
  tools?: ComponentChild
}

/** One metric of all runs. Without any value there is no chart. */
export function CurveChart({
  runs,
  groups,
  route,
  navigate,
  theme,
  index,
  run: selectedRun,
  name,
  height,
  legend,
  group,
  xRange,
  isWide,
  tools,
}: Props) {
  const smoothing = readSmoothing(route)
  const styles = useMemo(
    () => styleGroups(groups, runs, selectedRun, theme),
    [groups, runs, selectedRun?.id, theme],
  )
  const stored = useMemo(
    () =>
      aggregateGroups(groups, runs, (run) => findCurve(run, name))
        .map((line): ChartLine => ({ ...line, ...styles.get(line.key!)! }))
        // faint lines are drawn first: behind the others
        .sort((a, b) => Number(b.isFaint ?? false) - Number(a.isFaint ?? false)),
    [runs, groups, name, styles],
  )
  const isSmoothed = smoothing > 0 && name.startsWith(SMOOTHED_PREFIX)
  const lines = useMemo(
    () =>
      isSmoothed
        ? stored.map((line) =>
            !line.isFaint && isNoisy(line.values)
              ? { ...line, smoothed: smoothValues(line.values, 2 ** smoothing) }
              : line,
          )
        : stored,
    [stored, isSmoothed && smoothing],
  )
  if (!lines.some((line) => line.values.some((value) => value !== null))) return null
  const measure = findMeasure(runs, name)
  const steps = runs.length === 1 ? snapshotSteps(runs[0]) : []
  const log = String(route.log ?? "")
  return (
    <LineChart
      title={measure ? formatName(name.slice(MEASURE_PREFIX.length)) : name}
      unit={measure?.unit}
      description={measure?.description}
      lines={lines}
      theme={theme}
      log={log.includes("y")}
      logX={log.includes("x")}
      height={height}
      legend={legend ?? lines.length > 1}
      step={steps.length ? route.step : undefined}
      onStep={(step) => navigate({ step })}
      group={group}
      xRange={xRange}
      isEager={route.pane === "print"}
      isWide={isWide}
      tools={tools}
      csv={() => tabulateCurve(runs, name, labelRuns(index))}
    />
  )
}

/** A row per stored point of every run. */
export function tabulateCurve(runs: Run[], name: string, labels: Map<string, string>): Table {
  const names = stripDates(runs.map((run) => run.name))
  return {
    head: ["run", "step", name],
    rows: runs.flatMap((run, index) => {
      const curve = findCurve(run, name)
      const label = labels.get(run.id) ?? names[index]
      return curve ? curve.steps.map((step, point) => [label, step, curve.values[point]]) : []
    }),
  }
}

type LineStyle = Pick<ChartLine, "colour" | "isFaint" | "isDashed">

/** Colours of all groups, the same in every chart. The group of the selected run always has one. */
export function styleGroups(
  groups: Group[],
  runs: Run[],
  selectedRun: Run | null,
  theme: Theme,
): Map<string, LineStyle> {
  const ids = new Set(runs.map((run) => run.id))
  const shown = groups.filter((group) => group.runs.some((id) => ids.has(id)))
  const selected = shown.findIndex((group) => selectedRun && group.runs.includes(selectedRun.id))
  const coloured = shown.map((_, index) => index).slice(0, MAX_COLOURED_LINES)
  if (selected >= MAX_COLOURED_LINES) coloured[MAX_COLOURED_LINES - 1] = selected
  return new Map(
    shown.map((group, index) => {
      const position = coloured.indexOf(index)
      const style =
        position < 0
          ? { colour: FAINT_COLOURS[theme], isFaint: true }
          : { colour: lineColour(position, theme), isDashed: position >= LINE_COLOUR_COUNT }
      return [group.label, style]
    }),
  )
}

/** The stored points of a metric; of a measure, its mean over layers and heads. */
export function findCurve(run: Run, name: string): Curve | null {
  if (!name.startsWith(MEASURE_PREFIX)) return run.scalars[name] ?? null
  const measure = run.measures[name.slice(MEASURE_PREFIX.length)]
  return measure ? averageMeasure(measure) : null
}

function findMeasure(runs: Run[], name: string) {
  if (!name.startsWith(MEASURE_PREFIX)) return undefined
  const measureName = name.slice(MEASURE_PREFIX.length)
  return runs.find((run) => run.measures[measureName])?.measures[measureName]
}

/** Losses first, then validation, generation and the rest by name; what only describes the training last. */
export function compareCurveNames(a: string, b: string): number {
  const rank = (name: string) =>
    name === "train/loss"
      ? 0
      : name === "valid/loss"
        ? 1
        : name.startsWith("valid/")
          ? 2
          : name.startsWith("train/")
            ? 4
            : 3
  return rank(a) - rank(b) || a.localeCompare(b)
}
