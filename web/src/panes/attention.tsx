// The attention of a run at one step: all heads, one of them with its tokens, the layers compared, the heads as points.

import { useEffect, useState } from "preact/hooks"

import { drawMap } from "../draw/map"
import type { StepMaps } from "../maps"
import { lastUpTo, valuesAt, type Measure, type Run } from "../model"
import { headName, number, whole, words } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import { HeadDetail } from "../parts/head_detail"
import { HeadGrid } from "../parts/head_grid"
import { WeightScale } from "../parts/scale"
import { Scatter } from "../parts/scatter"
import { Similarity } from "../parts/similarity"
import { Choice, Facts } from "../parts/table"
import type { DataSource } from "../source"

function View(props: ViewProps) {
  const { run, source, index, place, go, theme } = props
  const step = place.step ?? Infinity
  const { maps, trouble } = useMaps(source, run, step)
  if (!run) return <p class="soft">there is no run yet</p>
  const [layer, head] = [place.layer ?? 0, place.head ?? 0]
  const chosen = maps?.layers[Math.min(layer, maps.layers.length - 1)]
  const choose = (newLayer: number, newHead: number) => go({ layer: newLayer, head: newHead })
  // of a look this is all that people see first: whether weights are trained must be said here
  const remarks = [trouble, ...(index.kind === "look" ? run.remarks : [])].filter(Boolean)
  const linked = (
    <div class="linked">
      {maps && chosen ? (
        <>
          <section class="card grid-card">
            <h2>All heads <small>layers down, heads across{mapsWhen(run, maps.step, step)}</small></h2>
            <HeadGrid layers={maps.layers} step={maps.step} layer={layer} head={head} theme={theme} draw={drawMap} onHead={choose} />
            <p class="soft hint"><WeightScale theme={theme} /> <span><kbd>j</kbd> <kbd>k</kbd> next head, <kbd>J</kbd> <kbd>K</kbd> next layer, <kbd>?</kbd> all keys</span></p>
          </section>
          <section class="card detail-card">
            <h2>{headName(layer, head)} <small>{chosen.name}</small></h2>
            <HeadDetail
              maps={chosen} head={Math.min(head, chosen.heads - 1)} theme={theme} queries={run.labels?.queries} keys={run.labels?.keys}
              query={place.query} onQuery={(query) => go({ query })} block={run.pooled[String(maps.step)] ?? 1}
            />
            <HeadNumbers run={run} layer={layer} head={head} step={step} />
          </section>
        </>
      ) : null}
      <Compared {...props} />
      <Points {...props} onHead={choose} />
    </div>
  )
  return (
    <>
      {remarks.map((text) => <p key={text} class="remark">{text}</p>)}
      {run.map_steps.length === 0 ? <p class="soft">no maps were kept: <code>tracking.maps_every</code> says how often</p> : null}
      {linked}
    </>
  )
}

/** The maps of the last step that has some, up to this one; what was shown stays until the next are there. */
export function useMaps(source: DataSource, run: Run | null, step: number): { maps: StepMaps | null; trouble: string } {
  const [maps, setMaps] = useState<StepMaps | null>(null)
  const [trouble, setTrouble] = useState("")
  const at = run ? Math.max(0, lastUpTo(run.map_steps, step)) : 0
  const wanted = run?.map_steps[at]
  const id = run?.id
  useEffect(() => {
    if (id === undefined || wanted === undefined || !run) return setMaps(null)
    let current = true
    source.maps(id, wanted).then(
      (found) => current && (setMaps(found), setTrouble("")), (problem) => current && setTrouble(String(problem.message ?? problem)),
    )
    // the neighbours too: the slider goes there next
    for (const next of [at + 1, at - 1]) if (run.map_steps[next] !== undefined) source.maps(id, run.map_steps[next]).catch(() => {})
    return () => { current = false }
  }, [source, id, wanted])
  return { maps, trouble }
}

function mapsWhen(run: Run, shown: number, step: number): string {
  return Number.isFinite(step) && shown !== step && run.map_steps.length > 1 ? `; maps of step ${whole(shown)}, the last before this one` : ""
}

function HeadNumbers({ run, layer, head, step }: { run: Run; layer: number; head: number; step: number }) {
  const rows: [string, string][] = []
  for (const [name, measure] of Object.entries(run.measures)) {
    const values = measure.axes === "head" ? valuesAt(measure, step) : null
    if (values) rows.push([words(name), `${number(values[layer * measure.shape[2] + head])} ${measure.unit}`])
  }
  return rows.length ? <Facts rows={rows} /> : null
}

function Compared({ run, place, go, theme }: ViewProps) {
  const names = Object.keys(run?.measures ?? {}).filter((name) => run!.measures[name].axes === "pair" && run!.measures[name].shape[1] > 1)
  if (!run || !names.length) return null
  const name = names.includes(String(place.pair)) ? String(place.pair) : names.includes("cosine_between") ? "cosine_between" : names[0]
  const measure = run.measures[name]
  return (
    <section class="card compared-card">
      <h2>Layers compared <Choice label="" value={name} among={names} onChange={(pair) => go({ pair })} /></h2>
      <p class="soft">{measure.says}</p>
      <Similarity measure={measure} layers={run.layers} step={place.step ?? Infinity} theme={theme} />
    </section>
  )
}

function Points({ run, place, go, theme, onHead }: ViewProps & { onHead: (layer: number, head: number) => void }) {
  const names = Object.keys(run?.measures ?? {}).filter((name) => run!.measures[name].axes === "head")
  if (!run || !names.length) return null
  const pick = (asked: unknown, usual: string, other: number) =>
    names.includes(String(asked)) ? String(asked) : names.includes(usual) ? usual : names[Math.min(other, names.length - 1)]
  const [x, y] = [pick(place.x, "entropy", 0), pick(place.y, "span", 1)]
  const layers = run.measures[x].shape[1]
  return (
    <section class="card points-card">
      <h2>Heads as points <small>from the first layer, blue, to the last, {theme === "dark" ? "yellow" : "orange"}; lines are the way they came</small></h2>
      <div class="tools">
        <Choice label="across" value={x} among={names} onChange={(chosen) => go({ x: chosen })} />
        <Choice label="up" value={y} among={names} onChange={(chosen) => go({ y: chosen })} />
      </div>
      <Scatter labels={[labelled(x, run.measures[x]), labelled(y, run.measures[y])]} x={run.measures[x]} y={run.measures[y]} step={place.step ?? Infinity} layers={layers} layer={place.layer ?? 0}
        head={place.head ?? 0} theme={theme} onHead={onHead} />
    </section>
  )
}

function labelled(name: string, measure: Measure): string {
  return `${words(name)}, ${measure.unit}`
}

export const attention: Pane = {
  key: "attention", title: "Attention", View, slides: true,
  shown: (run) => run !== null && (run.map_steps.length > 0 || Object.values(run.measures).some((one) => one.axes === "pair")),
}
