// Attention of a run at one step: all heads, one head in detail, similarity of layers, heads as points.

import { useEffect, useState } from "preact/hooks"

import { drawAttentionMap } from "../draw/heatmap"
import type { StepMaps } from "../attention_maps"
import { lastIndexUpTo, valuesAtStep, type Measure, type Run } from "../run_data"
import { errorMessage, formatHead, formatNumber, formatInteger, formatName } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import { HeadDetail } from "../components/head_detail"
import { HeadGrid } from "../components/head_grid"
import { HeadRoles } from "../components/head_roles"
import { WeightScale } from "../components/colour_scale"
import { ScatterPlot } from "../components/scatter_plot"
import { LayerSimilarity } from "../components/layer_similarity"
import { Select } from "../components/form_controls"
import { DescriptionList } from "../components/description_list"
import type { DataSource } from "../data_source"

function AttentionPane(props: PaneProps) {
  const { run, source, index, route, navigate, theme } = props
  const step = route.step ?? Infinity
  const { maps, errorText } = useNearestMaps(source, run, step)
  if (!run) return <p class="muted">no run yet</p>
  const [layer, head] = [route.layer ?? 0, route.head ?? 0]
  const layerMaps = maps?.layers[Math.min(layer, maps.layers.length - 1)]
  const labels = run.layer_labels ? run.layer_labels[layerMaps?.name ?? ""] : run.labels
  const role = run.roles?.[layer]?.[head]
  const selectHead = (newLayer: number, newHead: number) =>
    navigate({ layer: newLayer, head: newHead })
  // a snapshot opens with this pane: its notes, such as untrained weights, must be visible here
  const notes = [errorText, ...(index.kind === "snapshot" ? run.notes : [])].filter(Boolean)
  const linked = (
    <div class="attention-layout">
      {maps && layerMaps ? (
        <>
          <section class="card grid-card">
            <h2>
              All heads{" "}
              <small>layers down, heads across{describeMapStep(run, maps.step, step)}</small>
            </h2>
            <HeadGrid
              layers={maps.layers}
              step={maps.step}
              layer={layer}
              head={head}
              theme={theme}
              draw={drawAttentionMap}
              onHead={selectHead}
            />
            <p class="muted hint">
              <WeightScale theme={theme} signed={layerMaps.signed} scale={layerMaps.scale} />{" "}
              <span>
                <kbd>j</kbd> <kbd>k</kbd> next head, <kbd>J</kbd> <kbd>K</kbd> next layer,{" "}
                <kbd>?</kbd> all keys
              </span>
            </p>
            {run.roles ? (
              <HeadRoles roles={run.roles} layer={layer} head={head} onHead={selectHead} />
            ) : null}
          </section>
          <section class="card detail-card">
            <h2>
              {formatHead(layer, head)}{" "}
              <small>{role ? `${role}; ${layerMaps.name}` : layerMaps.name}</small>
            </h2>
            <HeadDetail
              maps={layerMaps}
              head={Math.min(head, layerMaps.heads - 1)}
              theme={theme}
              queries={labels?.queries}
              keys={labels?.keys}
              query={route.query}
              onQuery={(query) => navigate({ query })}
              positionsPerCell={run.downsampling[String(maps.step)] ?? 1}
            />
            <HeadMeasures run={run} layer={layer} head={head} step={step} />
          </section>
        </>
      ) : null}
      <LayerComparison {...props} />
      <HeadScatter {...props} onHead={selectHead} />
    </div>
  )
  return (
    <>
      {notes.map((text) => (
        <p key={text} class="note">
          {text}
        </p>
      ))}
      {run.map_steps.length === 0 ? (
        <p class="muted">
          no maps were stored: set <code>tracking.maps_every</code>
        </p>
      ) : null}
      {linked}
    </>
  )
}

/** Maps of the last step ≤ `step` that has any. The previous maps stay until the new ones are loaded. */
function useNearestMaps(
  source: DataSource,
  run: Run | null,
  step: number,
): { maps: StepMaps | null; errorText: string } {
  const [maps, setMaps] = useState<StepMaps | null>(null)
  const [errorText, setErrorText] = useState("")
  const index = run ? Math.max(0, lastIndexUpTo(run.map_steps, step)) : 0
  const mapStep = run?.map_steps[index]
  const id = run?.id
  useEffect(() => {
    if (id === undefined || mapStep === undefined || !run) return setMaps(null)
    let current = true
    source.maps(id, mapStep).then(
      (loaded) => {
        if (!current) return
        setMaps(loaded)
        setErrorText("")
      },
      (error) => current && setErrorText(errorMessage(error)),
    )
    // prefetch the neighbours: the slider goes there next
    for (const neighbour of [index + 1, index - 1])
      if (run.map_steps[neighbour] !== undefined)
        source.maps(id, run.map_steps[neighbour]).catch(() => {})
    return () => {
      current = false
    }
  }, [source, id, mapStep])
  return { maps, errorText }
}

function describeMapStep(run: Run, mapStep: number, step: number): string {
  return Number.isFinite(step) && mapStep !== step && run.map_steps.length > 1
    ? `; maps of step ${formatInteger(mapStep)}, the last stored before this step`
    : ""
}

function HeadMeasures({
  run,
  layer,
  head,
  step,
}: {
  run: Run
  layer: number
  head: number
  step: number
}) {
  const rows: [string, string][] = []
  for (const [name, measure] of Object.entries(run.measures)) {
    const values = measure.axes === "head" ? valuesAtStep(measure, step) : null
    if (values)
      rows.push([
        formatName(name),
        `${formatNumber(values[layer * measure.shape[2] + head])} ${measure.unit}`,
      ])
  }
  return rows.length ? <DescriptionList rows={rows} /> : null
}

function LayerComparison({ run, route, navigate, theme }: PaneProps) {
  const names = Object.keys(run?.measures ?? {}).filter(
    (name) => run!.measures[name].axes === "pair" && run!.measures[name].shape[1] > 1,
  )
  if (!run || !names.length) return null
  const name = names.includes(String(route.pair))
    ? String(route.pair)
    : names.includes("cosine_between")
      ? "cosine_between"
      : names[0]
  const measure = run.measures[name]
  return (
    <section class="card compared-card">
      <h2>
        Similarity of layers{" "}
        <Select label="" value={name} options={names} onChange={(pair) => navigate({ pair })} />
      </h2>
      <p class="muted">{measure.description}</p>
      <LayerSimilarity
        measure={measure}
        layers={run.layers}
        step={route.step ?? Infinity}
        theme={theme}
      />
    </section>
  )
}

function HeadScatter({
  run,
  route,
  navigate,
  theme,
  onHead,
}: PaneProps & { onHead: (layer: number, head: number) => void }) {
  const names = Object.keys(run?.measures ?? {}).filter(
    (name) => run!.measures[name].axes === "head",
  )
  if (!run || !names.length) return null
  const selectMeasure = (requested: unknown, preferred: string, fallback: number) =>
    names.includes(String(requested))
      ? String(requested)
      : names.includes(preferred)
        ? preferred
        : names[Math.min(fallback, names.length - 1)]
  const [x, y] = [selectMeasure(route.x, "entropy", 0), selectMeasure(route.y, "span", 1)]
  const layers = run.measures[x].shape[1]
  return (
    <section class="card points-card">
      <h2>
        Heads as points{" "}
        <small>
          from the first layer, blue, to the last, {theme === "dark" ? "yellow" : "orange"}
          {run.state === "snapshot" ? "" : "; lines show their path over training"}
        </small>
      </h2>
      <div class="toolbar">
        <Select
          label="across"
          value={x}
          options={names}
          onChange={(measure) => navigate({ x: measure })}
        />
        <Select
          label="up"
          value={y}
          options={names}
          onChange={(measure) => navigate({ y: measure })}
        />
      </div>
      <ScatterPlot
        labels={[formatAxis(x, run.measures[x]), formatAxis(y, run.measures[y])]}
        x={run.measures[x]}
        y={run.measures[y]}
        step={route.step ?? Infinity}
        layers={layers}
        layer={route.layer ?? 0}
        head={route.head ?? 0}
        theme={theme}
        onHead={onHead}
      />
    </section>
  )
}

function formatAxis(name: string, measure: Measure): string {
  return `${formatName(name)}, ${measure.unit}`
}

export default {
  title: "Attention",
  order: 40,
  component: AttentionPane,
  hasStepSlider: true,
  applies: ({ run }) =>
    run !== null &&
    (run.map_steps.length > 0 ||
      Object.values(run.measures).some((measure) => measure.axes === "pair")),
} satisfies PaneDefinition
