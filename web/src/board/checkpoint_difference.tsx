// A − B: difference of the attention maps of two checkpoints on the same probe, head by head. The
// checkpoints are of two runs or of one run at two steps.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"

import { divergingEnds } from "../draw/colours"
import { findCell } from "../draw/heatmap"
import type { LayerMaps, StepMaps } from "../attention_maps"
import type { Run } from "../run_data"
import { errorMessage, formatHead, formatNumber, formatToken, formatInteger } from "../format"
import type { PaneProps } from "../pane"
import { HeadGrid } from "../components/head_grid"
import type { DataSource } from "../data_source"
import type { Theme } from "../theme"
import { drawDifference, subtractMaps, rankHeadChanges, type MapDifference } from "./map_difference"

const MAX_SENTENCES = 6

export function CheckpointDifference({ source, runs, route, navigate, theme }: PaneProps) {
  const runsWithMaps = runs.filter((run) => run.map_steps.length)
  const a = runsWithMaps.find((run) => run.id === route.a) ?? runsWithMaps[0]
  const b = runsWithMaps.find((run) => run.id === route.b) ?? runsWithMaps[1] ?? a
  const isSameRun = a === b
  const stepA = resolveStep(a, route.as, -1)
  const stepB = resolveStep(b, route.bs, isSameRun ? 0 : -1)
  const [mapsA, errorA] = useStepMaps(source, a, stepA)
  const [mapsB, errorB] = useStepMaps(source, b, stepB)
  const mismatch = useMemo(
    () => (mapsA && mapsB ? explainMismatch(a, b, mapsA, mapsB) : ""),
    [a, b, mapsA, mapsB],
  )
  const layers = useMemo(
    () =>
      mapsA && mapsB && !mismatch
        ? mapsA.layers.map((maps, index) => subtractMaps(maps, mapsB.layers[index]))
        : [],
    [mapsA, mapsB, mismatch],
  )
  if (!a) return null
  const [layer, head] = [Math.min(route.layer ?? 0, layers.length - 1), route.head ?? 0]
  const detail = layers[layer]
  return (
    <section class="card">
      <h2>
        A − B <small>two checkpoints on the same probe</small>
      </h2>
      <div class="toolbar">
        <CheckpointSelect
          name="A"
          runs={runsWithMaps}
          run={a}
          step={stepA}
          onRun={(id) => navigate({ a: id, as: undefined })}
          onStep={(step) => navigate({ as: String(step) })}
        />
        <CheckpointSelect
          name="B"
          runs={runsWithMaps}
          run={b}
          step={stepB}
          onRun={(id) => navigate({ b: id, bs: undefined })}
          onStep={(step) => navigate({ bs: String(step) })}
        />
        <span class="scale">
          {divergingEnds(theme).map((colour, index) => (
            <i key={index} class="swatch" style={{ background: colour }} />
          ))}{" "}
          more in B, more in A
        </span>
      </div>
      {errorA || errorB || mismatch ? <p class="note">{errorA || errorB || mismatch}</p> : null}
      {layers.length ? (
        <div class="two-columns">
          <HeadGrid
            layers={layers}
            layer={layer}
            head={head}
            theme={theme}
            draw={drawDifference}
            onHead={(row, column) => navigate({ layer: row, head: column })}
          />
          {detail ? (
            <DifferenceDetail
              maps={detail}
              head={Math.min(head, detail.heads - 1)}
              layer={layer}
              theme={theme}
              labels={a.labels?.keys}
              queries={a.labels?.queries}
            />
          ) : null}
        </div>
      ) : null}
      {layers.length ? (
        <LargestChanges
          layers={layers}
          names={a.layers}
          keys={a.labels?.keys}
          queries={a.labels?.queries}
          onHead={(row, column) => navigate({ layer: row, head: column })}
        />
      ) : null}
    </section>
  )
}

function CheckpointSelect({
  name,
  runs,
  run,
  step,
  onRun,
  onStep,
}: {
  name: string
  runs: Run[]
  run: Run
  step: number
  onRun: (id: string) => void
  onStep: (step: number) => void
}) {
  return (
    <label class="choice">
      <b>{name}</b>{" "}
      <select
        aria-label={`run ${name}`}
        value={run.id}
        onChange={(event) => onRun(event.currentTarget.value)}
      >
        {runs.map((option) => (
          <option key={option.id} value={option.id}>
            {option.name}
          </option>
        ))}
      </select>{" "}
      <select
        aria-label={`step ${name}`}
        value={step}
        onChange={(event) => onStep(Number(event.currentTarget.value))}
      >
        {run.map_steps.map((mapStep) => (
          <option key={mapStep} value={mapStep}>
            step {formatInteger(mapStep)}
          </option>
        ))}
      </select>
    </label>
  )
}

function DifferenceDetail({
  maps,
  head,
  layer,
  theme,
  labels,
  queries,
}: {
  maps: MapDifference
  head: number
  layer: number
  theme: Theme
  labels?: string[]
  queries?: string[]
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [cell, setCell] = useState<[query: number, key: number] | null>(null)
  useLayoutEffect(() => drawDifference(canvas.current!, maps, head, theme), [maps, head, theme])
  const onMove = (event: MouseEvent) =>
    setCell(findCell(event, canvas.current!, maps.queries, maps.keys))
  const value =
    cell && maps.visible[cell[0] * maps.keys + cell[1]]
      ? maps.values[(head * maps.queries + cell[0]) * maps.keys + cell[1]]
      : null
  return (
    <div>
      <h3>{formatHead(layer, head)}</h3>
      <canvas
        ref={canvas}
        class={maps.keys > 250 ? "difference-map smooth-pixels" : "difference-map"}
        style={{ aspectRatio: `${maps.keys} / ${maps.queries}` }}
        onMouseMove={onMove}
        onMouseLeave={() => setCell(null)}
      />
      <p class="readout">
        {cell ? (
          <>
            <b>{formatPosition(queries ?? labels, cell[0])}</b> →{" "}
            <b>{formatPosition(labels, cell[1])}</b>{" "}
            {value === null ? "masked" : formatSigned(value)}
          </>
        ) : (
          <span class="muted">rows are queries, columns are keys</span>
        )}
      </p>
    </div>
  )
}

/** The heads that differ most, as sentences. */
function LargestChanges({
  layers,
  names,
  keys,
  queries,
  onHead,
}: {
  layers: MapDifference[]
  names: string[]
  keys?: string[]
  queries?: string[]
  onHead: (layer: number, head: number) => void
}) {
  const changes = useMemo(
    () => rankHeadChanges(layers, MAX_SENTENCES).filter((change) => change.movedShare > 0),
    [layers],
  )
  if (!changes.length) return <p class="muted">No head differs: A and B have the same attention.</p>
  return (
    <ul class="finding-list">
      {changes.map((change) => (
        <li key={`${change.layer} ${change.head}`}>
          <button
            type="button"
            class="link"
            title={names[change.layer]}
            onClick={() => onHead(change.layer, change.head)}
          >
            {formatHead(change.layer, change.head)}
          </button>{" "}
          moves {formatNumber(change.movedShare)} of its attention on average; most from{" "}
          <code>{formatPosition(queries ?? keys, change.query)}</code> to{" "}
          <code>{formatPosition(keys, change.key)}</code>: {formatSigned(change.value)}
        </li>
      ))}
    </ul>
  )
}

function useStepMaps(
  source: DataSource,
  run: Run | undefined,
  step: number,
): [StepMaps | null, string] {
  const [result, setResult] = useState<[StepMaps | null, string]>([null, ""])
  const id = run?.id
  useEffect(() => {
    if (id === undefined || step < 0) return setResult([null, ""])
    let current = true
    source.maps(id, step).then(
      (maps) => current && setResult([maps, ""]),
      (error) => current && setResult([null, errorMessage(error)]),
    )
    return () => {
      current = false
    }
  }, [source, id, step])
  return result
}

/** The step in the route if the run has it, else the run's step at index `fallback` (as in `at()`). */
function resolveStep(run: Run | undefined, requested: unknown, fallback: number): number {
  const steps = run?.map_steps ?? []
  return steps.includes(Number(requested)) && requested !== undefined
    ? Number(requested)
    : (steps.at(fallback) ?? -1)
}

/** Why the maps cannot be subtracted; empty if they can. */
function explainMismatch(runA: Run, runB: Run, mapsA: StepMaps, mapsB: StepMaps): string {
  if (JSON.stringify(runA.labels) !== JSON.stringify(runB.labels))
    return "These runs have different probes: their maps cannot be subtracted."
  const shape = (maps: LayerMaps) => `${maps.heads} × ${maps.queries} × ${maps.keys}`
  const differs =
    mapsA.layers.length !== mapsB.layers.length ||
    mapsA.layers.some((layer, index) => shape(layer) !== shape(mapsB.layers[index]))
  return differs
    ? "These networks differ in layers, heads or map sizes: their maps cannot be subtracted."
    : ""
}

function formatPosition(labels: string[] | undefined, position: number): string {
  return labels?.[position] !== undefined
    ? `${formatToken(labels[position])} (${position})`
    : String(position)
}

function formatSigned(value: number): string {
  return value > 0 ? `+${formatNumber(value)}` : formatNumber(value)
}
