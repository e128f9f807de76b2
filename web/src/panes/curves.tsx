// Every curve that was logged, and the mean of every measure of attention: runs over each other, seeds as bands.

import { useMemo } from "preact/hooks"

import { lines, meanOf, smoothed, type Line } from "../bands"
import { lineColour } from "../draw/colours"
import { lookedAt, type Curve, type Run } from "../model"
import { said, words } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import { Lines } from "../parts/lines"
import { Toggle } from "../parts/table"

const ATTENTION = "attention/"
const SMOOTH = 12

function View(props: ViewProps) {
  const { place, go } = props
  const runs = alike(props.run, props.runs)
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.scalars)))].sort(byImportance)
  const measures = [...new Set(runs.flatMap((run) => Object.keys(run.measures)))].map((name) => ATTENTION + name)
  return (
    <>
      <div class="tools">
        <Toggle label="logarithmic" on={place.log === "y"} onChange={(on) => go({ log: on ? "y" : undefined })} />
        <Toggle label="smooth" on={place.smooth === "y"} onChange={(on) => go({ smooth: on ? "y" : undefined })} />
        <span class="soft">over steps; drag to zoom, click twice to go back{runs.length > 1 ? "; bands are the standard error over seeds" : ""}{runs.length < props.runs.length ? `; runs of the task ${said(props.run?.settings.task)}` : ""}</span>
      </div>
      <div class="charts">{names.map((name) => <CurveChart key={name} {...props} runs={runs} name={name} />)}</div>
      {measures.length ? <h2>Attention, mean over layers and heads</h2> : null}
      <div class="charts">{measures.map((name) => <CurveChart key={name} {...props} runs={runs} name={name} />)}</div>
    </>
  )
}

/** Runs of the same task: the losses of different ones are no numbers to lay over each other. */
export function alike(run: Run | null, runs: Run[]): Run[] {
  return run ? runs.filter((one) => one.settings.task === run.settings.task) : runs
}

/** One curve of all runs. */
export function CurveChart({ runs, groups, place, go, theme, name, height }: ViewProps & { name: string; height?: number }) {
  const drawn = useMemo(() => {
    const smooth = place.smooth === "y" && !name.startsWith(ATTENTION)
    return lines(groups, runs, (run) => curveOf(run, name)).map((line, at) => ({
      ...(smooth ? smoothLine(line) : line), colour: lineColour(at, theme),
    }))
  }, [runs, groups, name, theme, place.smooth])
  const measure = runs.map((run) => run.measures[name.slice(ATTENTION.length)]).find(Boolean)
  const about = name.startsWith(ATTENTION) ? measure : undefined
  const steps = runs.length === 1 ? lookedAt(runs[0]) : []
  return (
    <Lines
      title={about ? words(name.slice(ATTENTION.length)) : name} unit={about?.unit} says={about?.says} lines={drawn} theme={theme}
      log={place.log === "y"} height={height} legend={drawn.length > 1}
      step={steps.length ? place.step : undefined} onStep={(step) => go({ step })}
    />
  )
}

function curveOf(run: Run, name: string): Curve | null {
  if (!name.startsWith(ATTENTION)) return run.scalars[name] ?? null
  const measure = run.measures[name.slice(ATTENTION.length)]
  return measure ? meanOf(measure) : null
}

function smoothLine(line: Line): Line {
  const again = (values?: (number | null)[]) => values && smoothed(values, SMOOTH)
  return { ...line, values: smoothed(line.values, SMOOTH), low: again(line.low), high: again(line.high) }
}

function byImportance(a: string, b: string): number {
  const rank = (name: string) => (name === "train/loss" ? 0 : name === "valid/loss" ? 1 : name.startsWith("valid/") ? 2 : 3)
  return rank(a) - rank(b) || a.localeCompare(b)
}

export const curves: Pane = {
  key: "curves", title: "Curves", View,
  shown: (run) => run !== null && (Object.keys(run.scalars).length > 0 || Object.values(run.measures).some((one) => one.steps.length > 1)),
}
