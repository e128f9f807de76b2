// One measure over time: layer by layer, and every head as a line of a table of colours.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"

import { ends, mean } from "../bands"
import { layerColour } from "../draw/colours"
import { cellAt, drawTable } from "../draw/map"
import { lastUpTo, type Measure, type Run } from "../model"
import { headName, number, whole, words } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import { Lines, type Drawn } from "../parts/lines"
import { Scale } from "../parts/scale"
import { Choice } from "../parts/table"
import type { Theme } from "../theme"

function View({ run, place, go, theme }: ViewProps) {
  const names = run ? measuresOf(run) : []
  const name = names.includes(String(place.measure)) ? String(place.measure) : names.includes("entropy") ? "entropy" : names[0]
  const measure = run?.measures[name]
  const layer = Math.min(place.layer ?? 0, (measure?.shape[1] ?? 1) - 1)
  const byLayer = useMemo(() => (measure ? layerLines(measure, theme) : []), [measure, theme])
  const byHead = useMemo(
    () => (measure?.axes === "head" ? headLines(measure, layer, place.head ?? 0, theme) : []), [measure, layer, place.head, theme],
  )
  if (!run || !measure) return <p class="soft">no attention was measured</p>
  const told = { unit: measure.unit, theme, step: place.step, onStep: (step: number) => go({ step }) }
  return (
    <>
      <div class="tools">
        <Choice label="measure" value={name} among={names} onChange={(chosen) => go({ measure: chosen })} />
        <span class="soft">{measure.says}</span>
      </div>
      {measure.steps.length > 1 ? (
        <div class="charts">
          <Lines title={`${words(name)}, layer by layer`} lines={byLayer} {...told} height={260} />
          {byHead.length ? <Lines title={`heads of ${headName(layer)}`} lines={byHead} {...told} height={260} /> : null}
        </div>
      ) : null}
      <Strip measure={measure} run={run} step={place.step ?? Infinity} theme={theme} chosen={[layer, place.head ?? 0]}
        onPick={(picked, head, step) => go({ layer: picked, head, step })} />
    </>
  )
}

interface StripProps {
  measure: Measure
  run: Run
  step: number
  theme: Theme
  chosen: [layer: number, head: number]
  onPick: (layer: number, head: number, step: number) => void
}

/** A row for every head, a column for every look. */
function Strip({ measure, run, step, theme, chosen, onPick }: StripProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [looks, layers] = measure.shape
  const heads = measure.axes === "head" ? measure.shape[2] : 1
  const range = ends(measure)
  useLayoutEffect(() => {
    const turned = new Float32Array(measure.values.length)
    for (let look = 0; look < looks; look++)
      for (let row = 0; row < layers * heads; row++) turned[row * looks + look] = measure.values[look * layers * heads + row]
    drawTable(canvas.current!, turned, layers * heads, looks, range, theme)
  }, [measure, theme])
  const [pointed, setPointed] = useState<[row: number, look: number] | null>(null)
  const tall = Math.max(9, Math.min(20, 460 / (layers * heads)))
  const now = lastUpTo(measure.steps, step)
  const [row, look] = pointed ?? [chosen[0] * heads + Math.min(chosen[1], heads - 1), now]
  const place = (event: MouseEvent) => cellAt(event, canvas.current!, layers * heads, looks)
  const pick = (event: MouseEvent) => {
    const [picked, at] = place(event)
    onPick(Math.floor(picked / heads), picked % heads, measure.steps[at])
  }
  return (
    <figure class="strips">
      <figcaption>
        <b>{heads > 1 ? "every head" : "every layer"} over time</b>{" "}
        <Scale low={number(range[0])} high={number(range[1])} unit={measure.unit} theme={theme} />
        {look >= 0 ? (
          <span class="at"><span class="soft">{heads > 1 ? headName(Math.floor(row / heads), row % heads) : headName(row)}, step {whole(measure.steps[look])} </span>
            <b>{number(measure.values[look * layers * heads + row])}</b></span>
        ) : null}
      </figcaption>
      <div class="strip-rows">
        <div class="strip-names">
          {Array.from({ length: layers }, (_, at) => (
            <span key={at} class={at === chosen[0] ? "chosen" : ""} style={{ height: `${tall * heads}px` }} title={run.layers[at]}>{headName(at)}</span>
          ))}
        </div>
        <div class="strip-picture">
          <canvas ref={canvas} role="img" aria-label="every row over time, as colours" style={{ height: `${tall * layers * heads}px` }} onClick={pick}
            onMouseMove={(event) => setPointed(place(event))} onMouseLeave={() => setPointed(null)} />
          <i class="now" style={{ left: `${((now + 0.5) / looks) * 100}%` }} />
          {heads > 1 ? <i class="row-now" style={{ top: `${(chosen[0] * heads + chosen[1]) * tall}px`, height: `${tall}px` }} /> : null}
        </div>
      </div>
    </figure>
  )
}

/** Measures of heads or layers; those of pairs have a view of their own. */
export function measuresOf(run: Run): string[] {
  return Object.keys(run.measures).filter((name) => run.measures[name].axes !== "pair").sort()
}

function layerLines(measure: Measure, theme: Theme): Drawn[] {
  const [looks, layers] = measure.shape
  const heads = measure.axes === "head" ? measure.shape[2] : 1
  return Array.from({ length: layers }, (_, layer) => {
    const rows = Array.from({ length: looks }, (_, look) =>
      measure.values.subarray((look * layers + layer) * heads, (look * layers + layer + 1) * heads))
    return { label: headName(layer), steps: measure.steps, values: rows.map(mean), colour: layerColour(layer, layers, theme) }
  })
}

function headLines(measure: Measure, layer: number, chosen: number, theme: Theme): Drawn[] {
  const [looks, layers, heads] = measure.shape
  return Array.from({ length: heads }, (_, head) => ({
    label: headName(layer, head), steps: measure.steps, chosen: head === chosen, colour: layerColour(head, heads, theme),
    values: Array.from({ length: looks }, (_, look) => finite(measure.values[(look * layers + layer) * heads + head])),
  }))
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

export const measures: Pane = {
  key: "measures", title: "Measures", View, slides: true, shown: (run) => run !== null && measuresOf(run).length > 0,
}
