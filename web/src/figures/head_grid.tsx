// All heads as squares with their maps; some are marked, by their role or as a problem.
//
// In a card: the heads at the start, on the way and at the end, with the marks they have by then. In
// the pane of findings: the heads at the end, and every marked head at its start, onset and end.

import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"

import type { StepMaps } from "../attention_maps"
import type { DataSource } from "../data_source"
import { lineColour } from "../draw/colours"
import { drawThumbnail } from "../draw/thumbnail"
import type { FigureDefinition, FigureProps } from "../figure"
import { formatHead, formatInteger } from "../format"
import { findRun } from "../components/linked_text"
import { ViewLink } from "../components/view_link"
import type { Navigate, Route } from "../route"
import type { Run } from "../run_data"
import type { Theme } from "../theme"
import "../styles/findings.css"

interface Mark {
  layer: number
  head: number
  label: string
  detail: string
  /** The step since which it holds; null if that is unknown. */
  onset: number | null
  /** Steps whose maps show how the head changed. */
  map_steps: number[]
}

interface HeadGridFigure {
  kind: "head_grid"
  run: string
  tone: "note" | "warning"
  /** Number of heads of each layer. */
  heads: number[]
  step: number | null
  marks: Mark[]
}

const MAX_LISTED_HEADS = 8
/** Colours of roles, by their place in the palette; orange is for warnings. */
const ROLE_COLOURS: Record<string, number> = {
  "previous token": 0,
  induction: 2,
  sink: 6,
  positional: 5,
  local: 3,
  delimiter: 4,
}

function HeadGridFigureView(props: FigureProps) {
  const { figure, runs, isCard } = props
  const data = figure as unknown as HeadGridFigure
  const run = findRun(data.run, runs)
  const { heads, marks } = data
  if (!run || !heads.length) return null
  return isCard ? (
    <Card {...props} data={data} run={run} />
  ) : (
    <Detail {...props} data={data} run={run} marks={marks} />
  )
}

type ViewProps = FigureProps & { data: HeadGridFigure; run: Run }

/** Three grids: the start, the step by which half of the marks hold, the end. */
function Card({ data, run, source, theme, navigate }: ViewProps) {
  const steps =
    data.tone === "note" ? chooseSteps(data.marks, run.map_steps) : run.map_steps.slice(-1)
  const maps = useMaps(source, run.id, steps)
  return (
    <div class="figure-head-grid">
      <div class="head-steps">
        {(steps.length ? steps : [null]).map((step) => (
          <figure key={step}>
            {step === null ? null : <figcaption>step {formatInteger(step)}</figcaption>}
            <Squares
              data={data}
              run={run}
              step={step}
              maps={step === null ? undefined : maps.get(step)}
              theme={theme}
              navigate={navigate}
            />
          </figure>
        ))}
      </div>
      <Legend data={data} theme={theme} />
    </div>
  )
}

function Detail({ data, run, source, theme, navigate, marks }: ViewProps & { marks: Mark[] }) {
  const last = run.map_steps[run.map_steps.length - 1] ?? null
  const listed = marks.slice(0, MAX_LISTED_HEADS)
  const stepsOf = (mark: Mark) => [
    ...new Set(mark.map_steps.map((step) => findNearest(run.map_steps, step))),
  ]
  const steps = [...new Set([...listed.flatMap(stepsOf), ...(last === null ? [] : [last])])]
  const maps = useMaps(source, run.id, steps)
  return (
    <div class="figure-head-grid head-overview">
      <figure>
        {last === null ? null : <figcaption>all heads, step {formatInteger(last)}</figcaption>}
        <Squares
          data={data}
          run={run}
          step={last}
          maps={last === null ? undefined : maps.get(last)}
          theme={theme}
          navigate={navigate}
        />
        <Legend data={data} theme={theme} />
      </figure>
      <ul class="marked-heads">
        {listed.map((mark) => {
          const { layer, head } = mark
          return (
            <li key={formatHead(layer, head)}>
              <HeadLink run={run} mark={mark} step={last} navigate={navigate}>
                {formatHead(layer, head)}
              </HeadLink>{" "}
              <Badge label={mark.label} colour={colourOf(data, mark.label, theme)} />
              {mark.detail ? <span class="detail">{mark.detail}</span> : null}
              <div class="head-thumbnails">
                {stepsOf(mark).map((step) => (
                  <HeadLink key={step} run={run} mark={mark} step={step} navigate={navigate}>
                    <span class="square">
                      <MapCanvas maps={maps.get(step)} layer={layer} head={head} theme={theme} />
                    </span>
                    step {formatInteger(step)}
                  </HeadLink>
                ))}
              </div>
            </li>
          )
        })}
        {marks.length > listed.length ? (
          <li class="muted">and {formatInteger(marks.length - listed.length)} more</li>
        ) : null}
      </ul>
    </div>
  )
}

interface SquaresProps {
  data: HeadGridFigure
  run: Run
  step: number | null
  maps: StepMaps | undefined
  theme: Theme
  navigate: Navigate
}

/** One row per layer. A mark shows from its onset on. */
function Squares({ data, run, step, maps, theme, navigate }: SquaresProps) {
  const columns = Math.max(...data.heads)
  return (
    <div class="head-squares" style={{ "--heads": String(columns) }}>
      {data.heads.map((count, layer) => [
        <span key={`L${layer}`}>{formatHead(layer)}</span>,
        ...Array.from({ length: columns }, (_, head) => {
          const key = formatHead(layer, head)
          if (head >= count) return <span key={key} />
          const mark = data.marks.find(
            (mark) =>
              mark.layer === layer &&
              mark.head === head &&
              (step === null || mark.onset === null || mark.onset <= step),
          )
          const title = mark ? `${key}: ${mark.label}${mark.detail ? `, ${mark.detail}` : ""}` : key
          const className = mark ? "square marked" : "square"
          const style = mark ? { "--mark": colourOf(data, mark.label, theme) } : undefined
          return step === null ? (
            <span key={key} class={className} title={title} style={style} />
          ) : (
            <ViewLink
              key={key}
              class={className}
              title={title}
              label={title}
              style={style}
              route={headRoute(run, layer, head, step)}
              navigate={navigate}
            >
              <MapCanvas maps={maps} layer={layer} head={head} theme={theme} />
            </ViewLink>
          )
        }),
      ])}
    </div>
  )
}

function HeadLink({
  run,
  mark,
  step,
  navigate,
  children,
}: {
  run: Run
  mark: Mark
  step: number | null
  navigate: Navigate
  children: ComponentChildren
}) {
  if (step === null) return <b>{children}</b>
  return (
    <ViewLink
      route={headRoute(run, mark.layer, mark.head, step)}
      navigate={navigate}
      label={`${formatHead(mark.layer, mark.head)} at step ${formatInteger(step)}`}
    >
      {children}
    </ViewLink>
  )
}

function headRoute(run: Run, layer: number, head: number, step: number): Partial<Route> {
  return { pane: "attention", run: run.id, step, layer, head }
}

function MapCanvas({
  maps,
  layer,
  head,
  theme,
}: {
  maps: StepMaps | undefined
  layer: number
  head: number
  theme: Theme
}) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const layerMaps = maps?.layers[layer]
  useLayoutEffect(() => {
    if (canvas.current && layerMaps && head < layerMaps.heads)
      drawThumbnail(canvas.current, layerMaps, head, theme)
  }, [layerMaps, head, theme])
  return layerMaps ? <canvas ref={canvas} /> : null
}

/** Every label with its colour and how many heads have it. */
function Legend({ data, theme }: { data: HeadGridFigure; theme: Theme }) {
  if (data.tone === "warning") return null // one colour
  const counts = new Map<string, number>()
  for (const { label } of data.marks) counts.set(label, (counts.get(label) ?? 0) + 1)
  return (
    <div class="head-legend">
      {[...counts].map(([label, count]) => (
        <Badge
          key={label}
          label={count > 1 ? `${label} × ${count}` : label}
          colour={colourOf(data, label, theme)}
        />
      ))}
    </div>
  )
}

function Badge({ label, colour }: { label: string; colour: string }) {
  return (
    <span class="head-mark">
      <i style={{ background: colour }} /> {label}
    </span>
  )
}

function colourOf({ tone }: HeadGridFigure, label: string, theme: Theme): string {
  return tone === "warning" ? "var(--warning)" : lineColour(ROLE_COLOURS[label] ?? 7, theme)
}

/** The first and the last step with maps, and the one at which about half of the marks hold. */
function chooseSteps(marks: Mark[], mapSteps: number[]): number[] {
  if (mapSteps.length < 3) return mapSteps
  const onsets = marks
    .flatMap((mark) => (mark.onset === null ? [] : [mark.onset]))
    .sort((a, b) => a - b)
  const [first, last] = [mapSteps[0], mapSteps[mapSteps.length - 1]]
  const target = onsets[Math.floor((onsets.length - 1) / 2)] ?? (first + last) / 2
  const middle = mapSteps.find((step) => step >= target && step > first) ?? last
  return [...new Set([first, middle, last])]
}

function findNearest(mapSteps: number[], step: number): number {
  return mapSteps.reduce(
    (best, candidate) => (Math.abs(candidate - step) < Math.abs(best - step) ? candidate : best),
    mapSteps[0] ?? step,
  )
}

/** Maps of some steps; they come one by one, and a step without maps never. */
function useMaps(source: DataSource, runId: string, steps: number[]): Map<number, StepMaps> {
  const [maps, setMaps] = useState(new Map<number, StepMaps>())
  const key = `${runId} ${steps.join(" ")}`
  useEffect(() => {
    let isCurrent = true
    setMaps(new Map())
    for (const step of steps)
      source.maps(runId, step).then(
        (stepMaps) => {
          if (isCurrent) setMaps((known) => new Map(known).set(step, stepMaps))
        },
        () => {},
      )
    return () => {
      isCurrent = false
    }
  }, [key, source])
  return maps
}

export default { component: HeadGridFigureView } satisfies FigureDefinition
