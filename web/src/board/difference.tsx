// A − B: the maps of two checkpoints on the same probe, head by head. Of two runs, or of one run at two steps.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"

import { cellAt } from "../draw/map"
import { visible, type LayerMaps, type StepMaps } from "../maps"
import type { Run } from "../model"
import { headName, number, token, whole } from "../numbers"
import type { ViewProps } from "../pane"
import { HeadGrid } from "../parts/head_grid"
import type { DataSource } from "../source"
import type { Theme } from "../theme"
import { ENDS, drawDifference, subtracted, strongest, type Subtracted } from "./subtract"

const SAID = 6

export function Difference({ source, runs, place, go, theme }: ViewProps) {
  const kept = runs.filter((one) => one.map_steps.length)
  const a = kept.find((one) => one.id === place.a) ?? kept[0]
  const b = kept.find((one) => one.id === place.b) ?? kept[1] ?? a
  const same = a === b
  const stepA = chosen(a, place.as, -1)
  const stepB = chosen(b, place.bs, same ? 0 : -1)
  const [mapsA, troubleA] = useMaps(source, a, stepA)
  const [mapsB, troubleB] = useMaps(source, b, stepB)
  const apart = useMemo(() => (mapsA && mapsB ? differing(a, b, mapsA, mapsB) : ""), [a, b, mapsA, mapsB])
  const layers = useMemo(() => (mapsA && mapsB && !apart ? mapsA.layers.map((one, at) => subtracted(one, mapsB.layers[at])) : []), [mapsA, mapsB, apart])
  if (!a) return null
  const [layer, head] = [Math.min(place.layer ?? 0, layers.length - 1), place.head ?? 0]
  const detail = layers[layer]
  return (
    <section class="card">
      <h2>A − B <small>two checkpoints on the same probe</small></h2>
      <div class="tools">
        <Side name="A" runs={kept} run={a} step={stepA} onRun={(id) => go({ a: id, as: undefined })} onStep={(step) => go({ as: String(step) })} />
        <Side name="B" runs={kept} run={b} step={stepB} onRun={(id) => go({ b: id, bs: undefined })} onStep={(step) => go({ bs: String(step) })} />
        <span class="scale">{ENDS[theme].map((colour, at) => <i key={at} class="end" style={{ background: colour }} />)} more in B, more in A</span>
      </div>
      {troubleA || troubleB || apart ? <p class="remark">{troubleA || troubleB || apart}</p> : null}
      {layers.length ? (
        <div class="two">
          <HeadGrid layers={layers} layer={layer} head={head} theme={theme} draw={drawDifference} onHead={(row, column) => go({ layer: row, head: column })} />
          {detail ? <Detail maps={detail} head={Math.min(head, detail.heads - 1)} layer={layer} theme={theme} labels={a.labels?.keys} queries={a.labels?.queries} /> : null}
        </div>
      ) : null}
      {layers.length ? <Words layers={layers} names={a.layers} keys={a.labels?.keys} queries={a.labels?.queries} onHead={(row, column) => go({ layer: row, head: column })} /> : null}
    </section>
  )
}

function Side({ name, runs, run, step, onRun, onStep }: {
  name: string; runs: Run[]; run: Run; step: number; onRun: (id: string) => void; onStep: (step: number) => void
}) {
  return (
    <label class="choice"><b>{name}</b>{" "}
      <select aria-label={`run ${name}`} value={run.id} onChange={(event) => onRun(event.currentTarget.value)}>
        {runs.map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
      </select>{" "}
      <select aria-label={`step ${name}`} value={step} onChange={(event) => onStep(Number(event.currentTarget.value))}>
        {run.map_steps.map((one) => <option key={one} value={one}>step {whole(one)}</option>)}
      </select>
    </label>
  )
}

function Detail({ maps, head, layer, theme, labels, queries }: {
  maps: Subtracted; head: number; layer: number; theme: Theme; labels?: string[]; queries?: string[]
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [at, setAt] = useState<[query: number, key: number] | null>(null)
  useLayoutEffect(() => drawDifference(canvas.current!, maps, head, theme), [maps, head, theme])
  const point = (event: MouseEvent) => setAt(cellAt(event, canvas.current!, maps.queries, maps.keys))
  const value = at && at[1] < visible(maps, at[0]) ? maps.values[(head * maps.queries + at[0]) * maps.keys + at[1]] : null
  return (
    <div>
      <h3>{headName(layer, head)}</h3>
      <canvas ref={canvas} class={maps.keys > 250 ? "whole fine" : "whole"} style={{ aspectRatio: `${maps.keys} / ${maps.queries}` }}
        onMouseMove={point} onMouseLeave={() => setAt(null)} />
      <p class="read">{at ? <><b>{named(queries ?? labels, at[0])}</b> → <b>{named(labels, at[1])}</b> {value === null ? "cannot be seen" : signed(value)}</> : <span class="soft">rows look, columns are looked at</span>}</p>
    </div>
  )
}

/** Where the two differ most, as sentences. */
function Words({ layers, names, keys, queries, onHead }: {
  layers: Subtracted[]; names: string[]; keys?: string[]; queries?: string[]; onHead: (layer: number, head: number) => void
}) {
  const found = useMemo(() => strongest(layers, SAID).filter((one) => one.moved > 0), [layers])
  if (!found.length) return <p class="soft">No head differs: A and B look at the same things.</p>
  return (
    <ul class="said">
      {found.map((one) => (
        <li key={`${one.layer} ${one.head}`}>
          <button type="button" class="link" title={names[one.layer]} onClick={() => onHead(one.layer, one.head)}>{headName(one.layer, one.head)}</button>{" "}
          moves {number(one.moved)} of its attention on average; most from <code>{named(queries ?? keys, one.query)}</code> to{" "}
          <code>{named(keys, one.key)}</code>: {signed(one.value)}
        </li>
      ))}
    </ul>
  )
}

function useMaps(source: DataSource, run: Run | undefined, step: number): [StepMaps | null, string] {
  const [found, setFound] = useState<[StepMaps | null, string]>([null, ""])
  const id = run?.id
  useEffect(() => {
    if (id === undefined || step < 0) return setFound([null, ""])
    let current = true
    source.maps(id, step).then((maps) => current && setFound([maps, ""]), (problem) => current && setFound([null, String(problem.message ?? problem)]))
    return () => { current = false }
  }, [source, id, step])
  return found
}

/** The step in the address, if the run has it; else one of its own, counted from the end where negative. */
function chosen(run: Run | undefined, asked: unknown, usual: number): number {
  const steps = run?.map_steps ?? []
  return steps.includes(Number(asked)) && asked !== undefined ? Number(asked) : steps.at(usual) ?? -1
}

/** Why two steps cannot be subtracted; nothing where they can. */
function differing(a: Run, b: Run, one: StepMaps, other: StepMaps): string {
  if (JSON.stringify(a.labels) !== JSON.stringify(b.labels)) return "These runs looked at different probes: their maps cannot be subtracted."
  const form = (maps: LayerMaps) => `${maps.heads} × ${maps.queries} × ${maps.keys}`
  const unlike = one.layers.length !== other.layers.length || one.layers.some((layer, at) => form(layer) !== form(other.layers[at]))
  return unlike ? "These networks have other layers or heads: their maps cannot be subtracted head by head." : ""
}

function named(labels: string[] | undefined, at: number): string {
  return labels?.[at] !== undefined ? `${token(labels[at])} (${at})` : String(at)
}

function signed(value: number): string {
  return value > 0 ? `+${number(value)}` : number(value)
}
