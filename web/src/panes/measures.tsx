// One attention measure over time: lines per layer and head, and a heatmap of all heads. With a single
// snapshot, a table of all heads.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"

import { colourRange, finiteMean, valueRange } from "../aggregation"
import { ChartGroup } from "../chart_group"
import { layerColour } from "../draw/colours"
import { findCell, drawHeatmap } from "../draw/heatmap"
import { ExportMenu, type Table } from "../export"
import { lastIndexUpTo, type Measure, type Run } from "../run_data"
import { formatHead, formatNumber, formatInteger, formatName } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import { LineChart, type ChartLine } from "../components/line_chart"
import { MeasureScale } from "../components/colour_scale"
import { MeasureTable } from "../components/measure_table"
import { Select } from "../components/form_controls"
import type { Theme } from "../theme"

function MeasuresPane({ run, route, navigate, theme }: PaneProps) {
  const names = run ? listMeasures(run) : []
  const name = names.includes(String(route.measure))
    ? String(route.measure)
    : names.includes("entropy")
      ? "entropy"
      : names[0]
  const measure = run?.measures[name]
  const layer = Math.min(route.layer ?? 0, (measure?.shape[1] ?? 1) - 1)
  const byLayer = useMemo(() => (measure ? buildLayerLines(measure, theme) : []), [measure, theme])
  const byHead = useMemo(
    () => (measure?.axes === "head" ? buildHeadLines(measure, layer, route.head ?? 0, theme) : []),
    [measure, layer, route.head, theme],
  )
  const group = useMemo(() => new ChartGroup(), [name])
  if (!run || !measure) return <p class="muted">no attention measures</p>
  const shared = {
    unit: measure.unit,
    theme,
    step: route.step,
    onStep: (step: number) => navigate({ step }),
    description: measure.description,
    group,
    isEager: route.pane === "print",
  }
  return (
    <>
      <div class="toolbar">
        <Select
          label="measure"
          value={name}
          options={names}
          onChange={(measure) => navigate({ measure })}
        />
        <span class="muted">{measure.description}</span>
      </div>
      {measure.steps.length > 1 ? (
        <div class="charts">
          <LineChart
            title={`${formatName(name)}, layer by layer`}
            lines={byLayer}
            {...shared}
            height={260}
          />
          {byHead.length ? (
            <LineChart
              title={`heads of ${formatHead(layer)}`}
              lines={byHead}
              {...shared}
              height={260}
            />
          ) : null}
        </div>
      ) : null}
      {measure.steps.length > 1 ? (
        <MeasureHeatmap
          measure={measure}
          run={run}
          step={route.step ?? Infinity}
          theme={theme}
          selected={[layer, route.head ?? 0]}
          onSelect={(layer, head, step) => navigate({ layer, head, step })}
        />
      ) : (
        <MeasureTable
          name={name}
          measure={measure}
          run={run}
          theme={theme}
          selected={[layer, route.head ?? 0]}
          onSelect={(layer, head) => navigate({ layer, head })}
        />
      )}
    </>
  )
}

interface HeatmapProps {
  measure: Measure
  run: Run
  step: number
  theme: Theme
  selected: [layer: number, head: number]
  onSelect: (layer: number, head: number, step: number) => void
}

/** Heatmap with a row per head and a column per snapshot. */
function MeasureHeatmap({ measure, run, step, theme, selected, onSelect }: HeatmapProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const figure = useRef<HTMLElement>(null)
  const [snapshots, layers] = measure.shape
  const heads = measure.axes === "head" ? measure.shape[2] : 1
  const values = valueRange(measure)
  const range = colourRange(measure)
  useLayoutEffect(() => {
    const transposed = new Float32Array(measure.values.length)
    for (let snapshot = 0; snapshot < snapshots; snapshot++)
      for (let row = 0; row < layers * heads; row++)
        transposed[row * snapshots + snapshot] = measure.values[snapshot * layers * heads + row]
    drawHeatmap(canvas.current!, transposed, layers * heads, snapshots, range, theme)
  }, [measure, theme])
  const [hovered, setHovered] = useState<[row: number, snapshot: number] | null>(null)
  const rowHeight = Math.max(9, Math.min(20, 460 / (layers * heads)))
  const current = lastIndexUpTo(measure.steps, step)
  const [row, snapshot] = hovered ?? [
    selected[0] * heads + Math.min(selected[1], heads - 1),
    current,
  ]
  const findHovered = (event: MouseEvent) =>
    findCell(event, canvas.current!, layers * heads, snapshots)
  const onClick = (event: MouseEvent) => {
    const [row, snapshot] = findHovered(event)
    onSelect(Math.floor(row / heads), row % heads, measure.steps[snapshot])
  }
  return (
    <figure class="measure-heatmap" ref={figure}>
      <figcaption>
        <b>{heads > 1 ? "every head" : "every layer"} over time</b>{" "}
        <MeasureScale values={values} range={range} unit={measure.unit} theme={theme} />
        {snapshot >= 0 ? (
          <span class="cursor-value" data-export="omit">
            <span class="muted">
              {heads > 1 ? formatHead(Math.floor(row / heads), row % heads) : formatHead(row)}, step{" "}
              {formatInteger(measure.steps[snapshot])}{" "}
            </span>
            <b>{formatNumber(measure.values[snapshot * layers * heads + row])}</b>
          </span>
        ) : null}
        <ExportMenu
          name={heads > 1 ? "heads-over-time" : "layers-over-time"}
          picture={() => figure.current}
          csv={() => tabulateMeasure(measure)}
        />
      </figcaption>
      <div class="heatmap-rows">
        <div class="heatmap-labels">
          {Array.from({ length: layers }, (_, layer) => (
            <span
              key={layer}
              class={layer === selected[0] ? "selected" : ""}
              style={{ height: `${rowHeight * heads}px` }}
              title={run.layers[layer]}
            >
              {formatHead(layer)}
            </span>
          ))}
        </div>
        <div class="heatmap-canvas">
          <canvas
            ref={canvas}
            role="img"
            aria-label="heatmap of every row over time"
            style={{ height: `${rowHeight * layers * heads}px` }}
            onClick={onClick}
            onMouseMove={(event) => setHovered(findHovered(event))}
            onMouseLeave={() => setHovered(null)}
          />
          <i class="step-marker" style={{ left: `${((current + 0.5) / snapshots) * 100}%` }} />
          {heads > 1 ? (
            <i
              class="row-marker"
              style={{
                top: `${(selected[0] * heads + selected[1]) * rowHeight}px`,
                height: `${rowHeight}px`,
              }}
            />
          ) : null}
        </div>
      </div>
    </figure>
  )
}

/** A row per step, a column per head or layer. */
function tabulateMeasure(measure: Measure): Table {
  const [, layers] = measure.shape
  const heads = measure.axes === "head" ? measure.shape[2] : 1
  const size = layers * heads
  const names = Array.from({ length: size }, (_, row) =>
    heads > 1 ? formatHead(Math.floor(row / heads), row % heads) : formatHead(row),
  )
  return {
    head: ["step", ...names],
    rows: measure.steps.map((step, snapshot) => [
      step,
      ...measure.values.subarray(snapshot * size, (snapshot + 1) * size),
    ]),
  }
}

/** Measures of heads or layers. Measures of pairs of layers are in the attention pane. */
function listMeasures(run: Run): string[] {
  return Object.keys(run.measures)
    .filter((name) => run.measures[name].axes !== "pair")
    .sort()
}

function buildLayerLines(measure: Measure, theme: Theme): ChartLine[] {
  const [snapshots, layers] = measure.shape
  const heads = measure.axes === "head" ? measure.shape[2] : 1
  return Array.from({ length: layers }, (_, layer) => {
    const rows = Array.from({ length: snapshots }, (_, snapshot) =>
      measure.values.subarray(
        (snapshot * layers + layer) * heads,
        (snapshot * layers + layer + 1) * heads,
      ),
    )
    return {
      label: formatHead(layer),
      steps: measure.steps,
      values: rows.map(finiteMean),
      colour: layerColour(layer, layers, theme),
    }
  })
}

function buildHeadLines(
  measure: Measure,
  layer: number,
  selectedHead: number,
  theme: Theme,
): ChartLine[] {
  const [snapshots, layers, heads] = measure.shape
  return Array.from({ length: heads }, (_, head) => ({
    label: formatHead(layer, head),
    steps: measure.steps,
    isSelected: head === selectedHead,
    colour: layerColour(head, heads, theme),
    values: Array.from({ length: snapshots }, (_, snapshot) =>
      finiteOrNull(measure.values[(snapshot * layers + layer) * heads + head]),
    ),
  }))
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

export default {
  title: "Measures",
  missing: "measures of attention",
  order: 30,
  component: MeasuresPane,
  hasStepSlider: true,
  applies: ({ run }) => run !== null && listMeasures(run).length > 0,
} satisfies PaneDefinition
