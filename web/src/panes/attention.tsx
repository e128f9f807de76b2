// Attention of a run at one step: all heads, one head in detail, similarity of layers, heads as points.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks"

import { drawAttentionMap, drawMapDifference } from "../draw/heatmap"
import { alignLayers, type LayerMaps, type StepMaps } from "../attention_maps"
import { parseOptions, type AttentionView } from "../attention_options"
import {
  arrangeHeads,
  findLaterOnset,
  getSelectedHead,
  listHeads,
  listSortKeys,
  readHeadMeasure,
  SORT_BY_LAYER,
} from "../head_selection"
import { lastIndexUpTo, valuesAtStep, type Measure, type Run } from "../run_data"
import { errorMessage, formatInteger, formatName, formatNumber, stripDate } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import { AttentionToolbar, Choice } from "../components/attention_toolbar"
import { describeHeads, HeadDetail } from "../components/head_detail"
import { HeadGrid, RoleBadge } from "../components/head_grid"
import { HeadRoles } from "../components/head_roles"
import { MAX_TRAILS, ScatterPlot } from "../components/scatter_plot"
import { ImageAttention } from "../components/image_attention"
import { LayerSimilarity } from "../components/layer_similarity"
import { Select } from "../components/form_controls"
import { DescriptionList } from "../components/description_list"
import type { DataSource } from "../data_source"
import { AttentionDigest } from "../digests/attention"
import { ExportMenu, Picture, type Table } from "../export"
import type { Theme } from "../theme"
import "../styles/attention.css"

function AttentionPane(props: PaneProps) {
  const { run, source, index, route, navigate, theme } = props
  const step = route.step ?? Infinity
  const options = parseOptions(route)
  const { maps: loadedMaps, errorText } = useNearestMaps(source, run, step)
  const maps = useMemo(
    () => loadedMaps && alignLayers(loadedMaps, run?.layers ?? []),
    [loadedMaps, run?.layers],
  )
  const { maps: loadedBase, errorText: baseError } = useNearestMaps(
    source,
    options.minus === null ? null : run,
    options.minus ?? 0,
  )
  const base = useMemo(
    () =>
      options.minus === null || !loadedBase ? null : alignLayers(loadedBase, run?.layers ?? []),
    [options.minus, loadedBase, run?.layers],
  )
  const { colours } = options
  const drawThumbnail = useCallback(
    (canvas: HTMLCanvasElement, layerMaps: LayerMaps, index: number, theme: Theme) => {
      const baseLayer = base?.layers.find(({ name }) => name === layerMaps.name)
      if (baseLayer && hasSameShape(layerMaps, baseLayer))
        drawMapDifference(canvas, layerMaps, baseLayer, index, theme, colours)
      else drawAttentionMap(canvas, layerMaps, index, theme, colours)
    },
    [base, colours],
  )
  if (!run) return <p class="muted">no run yet</p>
  const [layer, head] = getSelectedHead(run, route)
  const layerMaps = maps?.layers[layer]
  const isDrawable = layerMaps !== undefined && head < layerMaps.heads
  const labels = run.layer_labels ? run.layer_labels[layerMaps?.name ?? ""] : run.labels
  const selectHead = (newLayer: number, newHead: number) =>
    navigate({ layer: newLayer, head: newHead, heads: undefined })
  // a snapshot opens with this pane: its notes, such as untrained weights, must be visible here
  const notes = [errorText, baseError, ...(index.kind === "snapshot" ? run.notes : [])].filter(
    Boolean,
  )
  const views: AttentionView[] = [
    "map",
    "lines",
    "list",
    ...(run.map_steps.length > 1 ? (["steps"] as const) : []),
    ...(layerMaps && run.vectors?.[layerMaps.name] ? (["products"] as const) : []),
  ]
  const linked = (
    <div class="attention-layout">
      {maps && layerMaps ? (
        <>
          <section class="card grid-card">
            <h2>
              All heads{" "}
              <small>
                {countLayersAndHeads(maps)}
                {describeMapStep(run, maps.step, step)}
              </small>
            </h2>
            <ArrangedHeads
              {...props}
              run={run}
              maps={maps}
              step={step}
              layer={layer}
              head={head}
              draw={drawThumbnail}
              onHead={selectHead}
            />
            <p class="muted hint">
              <span>
                <kbd>j</kbd> <kbd>k</kbd> next head, <kbd>J</kbd> <kbd>K</kbd> next layer,{" "}
                <kbd>?</kbd> all keys
              </span>
            </p>
          </section>
          <section class="card detail-card">
            <h2>
              {capitalize(describeHeads(maps, layer, head, options))}{" "}
              {options.scope === "head" ? (
                <small>
                  <SelectedRole run={run} layer={layer} head={head} step={step} /> {layerMaps.name}
                </small>
              ) : null}
              {base ? <small>minus step {formatInteger(base.step)}</small> : null}
            </h2>
            <AttentionToolbar
              options={options}
              views={views}
              layer={layer}
              head={head}
              layerHeads={layerMaps.heads}
              allHeads={maps.layers.reduce((sum, { heads }) => sum + heads, 0)}
              steps={run.map_steps}
              navigate={navigate}
            />
            {isDrawable ? null : (
              <p class="muted">
                {layerMaps.name} has no weights at step {formatInteger(maps.step)}: they were not
                finite.
              </p>
            )}
            {isDrawable && run.image ? (
              <ImageAttention
                run={run}
                image={run.image}
                maps={maps}
                layer={layer}
                head={head}
                query={route.query}
                navigate={navigate}
              />
            ) : null}
            {isDrawable ? (
              <HeadDetail
                source={source}
                run={run}
                maps={maps}
                base={base}
                layer={layer}
                head={head}
                options={options}
                labels={labels}
                query={route.query}
                navigate={navigate}
                theme={theme}
              />
            ) : null}
            {options.scope === "head" ? (
              <HeadMeasures run={run} layer={layer} head={head} step={step} />
            ) : null}
          </section>
        </>
      ) : null}
      <LayerComparison {...props} />
      <HeadScatter {...props} layer={layer} head={head} onHead={selectHead} />
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

/** The grid of all heads with its order and its filter. */
function ArrangedHeads({
  run,
  maps,
  step,
  layer,
  head,
  route,
  navigate,
  theme,
  draw,
  onHead,
}: PaneProps & {
  run: Run
  maps: StepMaps
  step: number
  layer: number
  head: number
  draw: (canvas: HTMLCanvasElement, layer: LayerMaps, head: number, theme: Theme) => void
  onHead: (layer: number, head: number) => void
}) {
  const sortKeys = listSortKeys(run)
  const sort = sortKeys.includes(String(route.sort)) ? String(route.sort) : SORT_BY_LAYER
  const role = run.roles?.flat().includes(String(route.role)) ? String(route.role) : ""
  const order = useMemo(
    () => (sort === SORT_BY_LAYER && !role ? null : arrangeHeads(run, sort, role, step)),
    [run, sort, role, step],
  )
  const value = readHeadMeasure(run, sort, step)
  const picture = useRef<HTMLElement>(null)
  return (
    <>
      <div class="toolbar">
        {listHeads(run).length > 1 && sortKeys.length > 1 ? (
          <Choice
            label="sort by"
            value={sort}
            choices={sortKeys.map((key) => [key, formatName(key)])}
            onChange={(key) => navigate({ sort: key === SORT_BY_LAYER ? undefined : key })}
          />
        ) : null}
        <ExportMenu
          name={`all heads step ${maps.step}`}
          caption={`${stripDate(run.name)}; rows are queries, columns are keys; the darkest is a weight of 1, grey is masked`}
          picture={() => picture.current}
        />
      </div>
      {run.roles ? (
        <HeadRoles
          run={run}
          step={step}
          selected={role}
          onRole={(name) => {
            const heads = arrangeHeads(run, sort, name, step)
            const isShown = heads.some(([row, column]) => row === layer && column === head)
            const [first] = isShown ? [[layer, head]] : heads
            navigate({ role: name || undefined, layer: first[0], head: first[1] })
          }}
        />
      ) : null}
      <figure class="picture heads-picture" ref={picture}>
        <HeadGrid
          layers={maps.layers}
          step={maps.step}
          layer={layer}
          head={head}
          theme={theme}
          draw={draw}
          onHead={onHead}
          roles={run.roles}
          laterOnset={(index) => findLaterOnset(run, step, index)}
          order={order}
          note={value ? (row, column) => formatNumber(value([row, column])) : undefined}
        />
      </figure>
    </>
  )
}

/** `4 layers × 4 heads`; the total if layers differ. */
function countLayersAndHeads({ layers }: StepMaps): string {
  const counts = layers.map(({ heads }) => heads)
  const count = (value: number, noun: string) => `${value} ${noun}${value === 1 ? "" : "s"}`
  return new Set(counts).size === 1
    ? `${count(layers.length, "layer")} × ${count(counts[0], "head")}`
    : `${count(layers.length, "layer")}, ${counts.reduce((sum, value) => sum + value, 0)} heads`
}

/** A head of a run, at a step of its training. */
type HeadAtStep = { run: Run; layer: number; head: number; step: number }

/** The role of the selected head and since when it has it, or from when on it will. */
function SelectedRole({ run, layer, head, step }: HeadAtStep) {
  const role = run.roles?.[layer]?.[head]
  if (!role) return null
  const later = findLaterOnset(run, step, [layer, head])
  if (later !== null) return <span>{`${role} from step ${formatInteger(later)};`}</span>
  const onset = run.role_onsets?.[layer]?.[head] ?? null
  return (
    <>
      <RoleBadge role={role} />
      {onset === null || run.map_steps.length < 2 ? null : ` since step ${formatInteger(onset)};`}
    </>
  )
}

function hasSameShape(a: LayerMaps, b: LayerMaps): boolean {
  return a.heads === b.heads && a.queries === b.queries && a.keys === b.keys
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/**
 * Maps of the last step ≤ `step` that has any. Those of the previous step stay until the new ones are
 * loaded; those of another run do not.
 */
function useNearestMaps(
  source: DataSource,
  run: Run | null,
  step: number,
): { maps: StepMaps | null; errorText: string } {
  const [loaded, setLoaded] = useState<{ id: string; maps: StepMaps } | null>(null)
  const [errorText, setErrorText] = useState("")
  const index = run ? Math.max(0, lastIndexUpTo(run.map_steps, step)) : 0
  const mapStep = run?.map_steps[index]
  const id = run?.id
  useEffect(() => {
    if (id === undefined || mapStep === undefined || !run) return setLoaded(null)
    let current = true
    source.maps(id, mapStep).then(
      (maps) => {
        if (!current) return
        setLoaded({ id, maps })
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
  return { maps: loaded && loaded.id === id ? loaded.maps : null, errorText }
}

function describeMapStep(run: Run, mapStep: number, step: number): string {
  return Number.isFinite(step) && mapStep !== step && run.map_steps.length > 1
    ? `; maps of step ${formatInteger(mapStep)}, the last stored before this step`
    : ""
}

function HeadMeasures({ run, layer, head, step }: HeadAtStep) {
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
      <Picture
        name={`layers ${name}`}
        csv={() => tabulatePairs(measure, run.layers, route.step ?? Infinity)}
      >
        <LayerSimilarity
          measure={measure}
          layers={run.layers}
          step={route.step ?? Infinity}
          theme={theme}
        />
      </Picture>
    </section>
  )
}

function HeadScatter({
  run,
  route,
  navigate,
  theme,
  layer,
  head,
  onHead,
}: PaneProps & {
  layer: number
  head: number
  onHead: (layer: number, head: number) => void
}) {
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
          from the first layer, blue, to the last, pink
          {run.state === "snapshot"
            ? ""
            : layers * run.measures[x].shape[2] > MAX_TRAILS
              ? "; the line shows the path of the selected head from the first snapshot"
              : "; lines show their paths from the first snapshot"}
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
      <Picture
        name={`heads ${x} ${y}`}
        csv={() => tabulateHeads(run, [x, y], route.step ?? Infinity)}
      >
        <ScatterPlot
          labels={[formatAxis(x, run.measures[x]), formatAxis(y, run.measures[y])]}
          x={run.measures[x]}
          y={run.measures[y]}
          step={route.step ?? Infinity}
          layers={layers}
          layer={layer}
          head={head}
          theme={theme}
          onHead={onHead}
        />
      </Picture>
    </section>
  )
}

/** A row per head with its measures at a step. */
function tabulateHeads(run: Run, names: string[], step: number): Table {
  const columns = names.map((name) => run.measures[name])
  const values = columns.map((measure) => valuesAtStep(measure, step))
  const [, layers, heads] = columns[0].shape
  const rows = Array.from({ length: layers * heads }, (_, index) => [
    Math.floor(index / heads),
    index % heads,
    ...values.map((row) => row?.[index] ?? null),
  ])
  return { head: ["layer", "head", ...names], rows }
}

/** A row per pair of layers with a value. */
function tabulatePairs(measure: Measure, layers: string[], step: number): Table {
  const values = valuesAtStep(measure, step) ?? new Float32Array()
  const size = measure.shape[1]
  const rows = Array.from(values, (value, index): (string | number)[] => [
    layers[Math.floor(index / size)],
    layers[index % size],
    value,
  ])
  return {
    head: ["layer", "other layer", "value"],
    rows: rows.filter((row) => Number.isFinite(row[2])),
  }
}

function formatAxis(name: string, measure: Measure): string {
  return `${formatName(name)}, ${measure.unit}`
}

export default {
  title: "Attention",
  digest: AttentionDigest,
  missing:
    "attention maps: its network has no attention, or they were not recorded (tracking.maps_every)",
  order: 40,
  component: AttentionPane,
  hasStepSlider: true,
  applies: ({ run }) =>
    run !== null &&
    (run.map_steps.length > 0 ||
      Object.values(run.measures).some((measure) => measure.axes === "pair")),
} satisfies PaneDefinition
