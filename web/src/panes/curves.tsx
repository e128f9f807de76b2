// All logged metrics and the mean of every attention measure, in groups that fold; runs share charts.

import { useEffect, useMemo, useRef } from "preact/hooks"

import { ChartGroup, useChartGroup } from "../chart_group"
import {
  compareCurveNames,
  CurveChart,
  filterSameTask,
  MEASURE_PREFIX,
  styleGroups,
} from "../components/curve_chart"
import { CurveControls } from "../components/curve_controls"
import { Legend, type ChartLine } from "../components/line_chart"
import { formatCount, formatInteger, formatName, formatSetting } from "../format"
import { LossesDigest } from "../digests/losses"
import type { PaneDefinition, PaneProps } from "../pane"
import type { Navigate, Route } from "../route"
import type { Group, Run } from "../run_data"
import "../styles/curves.css"
import type { Theme } from "../theme"

/** With more charts than this on the page, those of measures are folded: they have a tab of their own. */
const MAX_OPEN_CHARTS = 12
const ENLARGED_HEIGHT = 420
const SECTION_TITLES: Record<string, string> = {
  loss: "Loss",
  valid: "Validation",
  train: "Training",
  generation: "Generation",
  attention: "Attention measures, mean over layers and heads",
}

function CurvesPane(props: PaneProps) {
  const { route, navigate, groups, theme } = props
  const runs = useMemo(() => filterSameTask(props.run, props.runs), [props.run, props.runs])
  const { names, empty, xRange } = useMemo(() => collectCurves(runs), [runs])
  const group = useChartGroup(useRoutedGroup(route, navigate))
  const legendLines = useMemo(
    () => listLegendLines(groups, runs, props.run, theme),
    [groups, runs, props.run?.id, theme],
  )
  const hasSeeds = legendLines.length < runs.length
  const runsById = useMemo(() => new Map(runs.map((run) => [run.id, run])), [runs])
  const hasAnyCurve = (line: ChartLine, shown: string[]) =>
    groups
      .find((group) => group.label === line.key)!
      .runs.some((id) => shown.some((name) => hasCurve(runsById.get(id), name)))
  const pins = splitNames(route.pins).filter((name) => names.includes(name))
  const search = String(route.find ?? "")
  const matching = names.filter((name) => matchesSearch(name, search, runs))
  const sections = sortIntoSections(matching.filter((name) => !pins.includes(name)))
  const pinned = pins.filter((name) => matching.includes(name))
  const isOpenByDefault = (key: string) => key !== "attention" || names.length <= MAX_OPEN_CHARTS
  const isOpen = (key: string) =>
    search !== "" ||
    (route.open === undefined ? isOpenByDefault(key) : splitNames(route.open).includes(key))
  const toggleSection = (key: string) => {
    const open = [...sections.keys()].filter((other) => (other === key) !== isOpen(other))
    navigate({ open: open.length ? joinNames(open) : "none" })
  }
  const togglePin = (name: string) =>
    navigate({
      pins: joinNames(pins.includes(name) ? pins.filter((pin) => pin !== name) : [...pins, name]),
    })
  const drawCharts = (shown: string[]) => (
    <>
      {legendLines.length > 1 ? (
        <Legend lines={legendLines.filter((line) => hasAnyCurve(line, shown))} group={group} />
      ) : null}
      <div class="charts curve-charts">
        {shown.map((name) => {
          const isWide = route.wide === name
          const isPinned = pins.includes(name)
          return (
            <CurveChart
              key={name}
              {...props}
              runs={runs}
              name={name}
              group={group}
              xRange={xRange}
              legend={false}
              isWide={isWide}
              height={isWide ? ENLARGED_HEIGHT : undefined}
              tools={
                <>
                  <button
                    type="button"
                    aria-pressed={isPinned}
                    aria-label={`pin ${name}`}
                    title={isPinned ? "unpin" : "pin to the top"}
                    onClick={() => togglePin(name)}
                  >
                    {isPinned ? "★" : "☆"}
                  </button>
                  <button
                    type="button"
                    aria-pressed={isWide}
                    aria-label={`enlarge ${name}`}
                    title={isWide ? "back to the small chart" : "enlarge"}
                    onClick={() => navigate({ wide: isWide ? undefined : name })}
                  >
                    ⤢
                  </button>
                </>
              }
            />
          )
        })}
      </div>
    </>
  )
  return (
    <>
      <div class="toolbar curve-toolbar">
        <input
          type="search"
          placeholder="find a curve"
          aria-label="find a curve"
          value={search}
          onInput={(event) =>
            navigate({ find: event.currentTarget.value || undefined }, { replace: true })
          }
        />
        <CurveControls
          route={route}
          navigate={navigate}
          canSmooth={names.some((name) => name.startsWith("train/"))}
        />
        {group.range ? (
          <button type="button" onClick={() => group.zoom(null)}>
            steps {formatInteger(Math.round(group.range[0]))} –{" "}
            {formatInteger(Math.round(group.range[1]))}: show all
          </button>
        ) : null}
        <span class="muted hint-text">
          over steps; drag to zoom, double-click to reset
          {hasSeeds ? "; bands are the standard error over seeds" : ""}
          {runs.length < props.runs.length
            ? `; runs of the task ${formatSetting(props.run?.settings.task)}`
            : ""}
        </span>
      </div>
      {pinned.length ? (
        <section class="curve-section" data-section="pinned">
          <h2>Pinned</h2>
          {drawCharts(pinned)}
        </section>
      ) : null}
      {[...sections].map(([key, shown]) => (
        <section key={key} class="curve-section" data-section={key}>
          <h2>
            <button
              type="button"
              class="fold"
              aria-expanded={isOpen(key)}
              onClick={() => toggleSection(key)}
            >
              <span class="fold-sign" aria-hidden="true">
                {isOpen(key) ? "▾" : "▸"}
              </span>
              {SECTION_TITLES[key] ?? formatName(key)}
              <span class="muted"> {formatCount(shown.length, "chart")}</span>
            </button>
          </h2>
          {isOpen(key) ? drawCharts(shown) : null}
        </section>
      ))}
      {search && !matching.length ? (
        <p class="muted" role="status">
          No curve matches “{search}”.
        </p>
      ) : null}
      {empty.length && !search ? (
        <p class="muted">
          All values are NaN:{" "}
          {empty.map(([name, count]) => `${name} (${formatInteger(count)})`).join(", ")}
        </p>
      ) : null}
    </>
  )
}

/** A group whose zoom and hidden lines are in the address. */
function useRoutedGroup(route: Route, navigate: Navigate): ChartGroup {
  const navigateRef = useRef(navigate)
  navigateRef.current = navigate
  const group = useMemo(() => {
    const created = new ChartGroup(({ range, hidden }) =>
      navigateRef.current({ zoom: range?.join("~"), hide: joinNames([...hidden]) }),
    )
    created.restore(parseZoom(route.zoom), new Set(splitNames(route.hide)))
    return created
  }, [])
  useEffect(() => {
    const isCurrent =
      (group.range?.join("~") ?? "") === String(route.zoom ?? "") &&
      (joinNames([...group.hidden]) ?? "") === String(route.hide ?? "")
    if (!isCurrent) group.restore(parseZoom(route.zoom), new Set(splitNames(route.hide)))
  }, [route.zoom, route.hide])
  return group
}

function parseZoom(text: unknown): [number, number] | null {
  const [low, high] = String(text ?? "")
    .split("~")
    .map(Number)
  return Number.isFinite(low) && Number.isFinite(high) && low < high ? [low, high] : null
}

/** Names in the address, separated by "|". */
function splitNames(text: unknown): string[] {
  return typeof text === "string" && text ? text.split("|").map(unescapeName) : []
}

function joinNames(names: string[]): string | undefined {
  return names.length
    ? names.map((name) => name.replaceAll("~", "~0").replaceAll("|", "~1")).join("|")
    : undefined
}

function unescapeName(name: string): string {
  return name.replaceAll("~1", "|").replaceAll("~0", "~")
}

/** Curves that have values, in their order; those without, and how many NaN they have; the steps of all. */
function collectCurves(runs: Run[]): {
  names: string[]
  empty: [name: string, count: number][]
  xRange: [number, number] | undefined
} {
  const [filled, empty] = [new Set<string>(), new Map<string, number>()]
  let [first, last] = [Infinity, -Infinity]
  const coverSteps = (steps: number[]) => {
    if (!steps.length) return
    first = Math.min(first, steps[0])
    last = Math.max(last, steps[steps.length - 1])
  }
  for (const run of runs) {
    for (const [name, { steps, values }] of Object.entries(run.scalars)) {
      if (values.some((value) => value !== null)) filled.add(name)
      else empty.set(name, (empty.get(name) ?? 0) + values.length)
      coverSteps(steps)
    }
    for (const [name, { steps }] of Object.entries(run.measures)) {
      if (steps.length) filled.add(MEASURE_PREFIX + name)
      coverSteps(steps)
    }
  }
  return {
    names: [...filled].sort(compareCurveNames),
    empty: [...empty].filter(([name]) => !filled.has(name)),
    xRange: first <= last ? [first, last] : undefined,
  }
}

function hasCurve(run: Run | undefined, name: string): boolean {
  return name.startsWith(MEASURE_PREFIX)
    ? run?.measures[name.slice(MEASURE_PREFIX.length)] !== undefined
    : run?.scalars[name] !== undefined
}

/** Section → names of its curves. A name belongs to the section of its prefix; losses have their own. */
function sortIntoSections(names: string[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const name of names) {
    const prefix = name.includes("/") ? name.slice(0, name.indexOf("/")) : "other"
    const key = /(^|\/)loss$/.test(name) && prefix !== "attention" ? "loss" : prefix
    found.set(key, [...(found.get(key) ?? []), name])
  }
  const known = Object.keys(SECTION_TITLES)
  const rank = (key: string) =>
    key === "attention" ? known.length + 1 : known.includes(key) ? known.indexOf(key) : known.length
  return new Map([...found].sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b)))
}

/** Whether the name or the description of a curve has all words of a search. */
function matchesSearch(name: string, search: string, runs: Run[]): boolean {
  if (!search.trim()) return true
  const measureName = name.startsWith(MEASURE_PREFIX) ? name.slice(MEASURE_PREFIX.length) : ""
  const measure = measureName ? runs.find((run) => run.measures[measureName]) : undefined
  const text = `${name} ${formatName(name)} ${measure?.measures[measureName].description ?? ""}`
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word))
}

/** One entry per group of runs, whatever curves it has. */
function listLegendLines(
  groups: Group[],
  runs: Run[],
  selectedRun: Run | null,
  theme: Theme,
): ChartLine[] {
  const ids = new Set(runs.map((run) => run.id))
  return [...styleGroups(groups, runs, selectedRun, theme)].map(([key, style]) => {
    const group = groups.find((group) => group.label === key)!
    const seeds = group.runs.filter((id) => ids.has(id)).length
    const label = seeds > 1 ? `${key} (${seeds} seeds)` : key
    return { key, label, steps: [], values: [], ...style }
  })
}

export default {
  title: "Curves",
  order: 20,
  component: CurvesPane,
  digest: LossesDigest,
  missing: "logged metrics",
  applies: ({ run }) =>
    run !== null &&
    (Object.keys(run.scalars).length > 0 ||
      Object.values(run.measures).some((measure) => measure.steps.length > 1)),
} satisfies PaneDefinition
