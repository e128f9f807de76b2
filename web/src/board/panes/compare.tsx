// Comparison of runs: curves in shared charts, differing settings, difference of two checkpoints' maps.

import { useEffect, useMemo, useState } from "preact/hooks"

import { ChartGroup } from "../../chart_group"
import { lineColour } from "../../draw/colours"
import type { Group, Run } from "../../run_data"
import type { PaneDefinition, PaneProps } from "../../pane"
import { compareCurveNames, CurveChart, MEASURE_PREFIX } from "../../components/curve_chart"
import { formatSetting, stripDates } from "../../format"
import { CurveControls } from "../../components/curve_controls"
import type { DataSource } from "../../data_source"
import { CheckpointDifference } from "../checkpoint_difference"
import { formatRunIds, parseComparedRuns } from "../compared_runs"

const MAX_RUNS = 8

function ComparePane(props: PaneProps) {
  const { source, index, run, route, navigate, theme } = props
  const ids = useMemo(
    () =>
      [...new Set([...(route.run ? [route.run] : []), ...parseComparedRuns(route)])].slice(
        0,
        MAX_RUNS,
      ),
    [route.run, route.with],
  )
  const runs = useFollowedRuns(source, ids)
  const group = useMemo(() => new ChartGroup(), [])
  const shortNames = stripDates(runs.map((run) => run.name))
  const groups: Group[] = runs.map((run, position) => ({
    label: shortNames[position],
    data: "",
    runs: [run.id],
    findings: [],
  }))
  const otherEntries = index.runs.filter(
    (entry) => !ids.includes(entry.id) && entry.state !== "broken",
  )
  const selectRuns = (next: string[]) =>
    navigate({ run: next[0], with: formatRunIds(next.slice(1)) })
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.scalars)))]
    .filter((name) => runs.filter((run) => name in run.scalars).length > 1)
    .sort(compareCurveNames)
  const measures = [...new Set(runs.flatMap((run) => Object.keys(run.measures)))].filter(
    (name) => runs.filter((run) => name in run.measures).length > 1,
  )
  const chartProps = { ...props, runs, groups }
  return (
    <>
      <div class="toolbar">
        {runs.map((run, index) => (
          <span key={run.id} class="chip" title={run.name}>
            <i style={{ background: lineColour(index, theme) }} />
            {shortNames[index]}
            <button
              type="button"
              aria-label={`remove ${run.name}`}
              onClick={() => selectRuns(ids.filter((id) => id !== run.id))}
            >
              ×
            </button>
          </span>
        ))}
        {otherEntries.length && ids.length < MAX_RUNS ? (
          <select
            aria-label="add a run"
            value=""
            onChange={(event) => selectRuns([...ids, event.currentTarget.value])}
          >
            <option value="">add a run…</option>
            {[...otherEntries].reverse().map((entry) => (
              <option key={entry.id} value={entry.id}>
                {entry.name}
              </option>
            ))}
          </select>
        ) : null}
        <CurveControls
          route={route}
          navigate={navigate}
          canSmooth={names.some((name) => name.startsWith("train/"))}
        />
      </div>
      {runs.length < ids.length ? (
        <p class="muted" role="status">
          loading…
        </p>
      ) : ids.length < 2 ? (
        <p class="muted">
          {run
            ? "Add a second run above, or compare two steps of this run below."
            : "Select two runs above or in the list of runs."}
        </p>
      ) : null}
      {runs.length > 1 ? <SettingDifferences runs={runs} /> : null}
      {runs.length > 1 ? (
        <div class="charts">
          {names.map((name) => (
            <CurveChart key={name} {...chartProps} name={name} group={group} />
          ))}
        </div>
      ) : null}
      {runs.length ? <CheckpointDifference {...chartProps} /> : null}
      {runs.length > 1 && measures.length ? <h2>Attention, mean over layers and heads</h2> : null}
      {runs.length > 1 ? (
        <div class="charts">
          {measures.map((name) => (
            <CurveChart key={name} {...chartProps} name={MEASURE_PREFIX + name} group={group} />
          ))}
        </div>
      ) : null}
    </>
  )
}

/** Settings whose values differ between the runs. */
function SettingDifferences({ runs }: { runs: Run[] }) {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.settings)))].filter(
    (key) => key !== "name" && key !== "network",
  )
  const shortNames = stripDates(runs.map((run) => run.name))
  const differing = keys
    .filter((key) => new Set(runs.map((run) => formatSetting(run.settings[key]))).size > 1)
    .sort()
  if (!differing.length)
    return (
      <p class="muted">
        All settings are equal
        {new Set(runs.map((run) => run.program)).size > 1 ? "; the programs differ" : ""}.
      </p>
    )
  return (
    <div class="scroll-x setting-differences">
      <table>
        <thead>
          <tr>
            <th>setting</th>
            {runs.map((run, position) => (
              <th key={run.id} title={run.name}>
                {shortNames[position]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {differing.map((key) => (
            <tr key={key}>
              <td class="muted">{key}</td>
              {runs.map((run) => (
                <td key={run.id}>{formatShort(run.settings[key])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function formatShort(value: unknown): string {
  if (value === null || value === undefined) return "–"
  const text = formatSetting(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}

/** Load runs and keep them up to date. */
function useFollowedRuns(source: DataSource, ids: string[]): Run[] {
  const [runs, setRuns] = useState(new Map<string, Run>())
  useEffect(() => {
    let current = true
    const update = (run: Run) =>
      current && setRuns((previous) => new Map(previous).set(run.id, run))
    for (const id of ids) void source.run(id).then(update)
    const unsubscribers = ids.map((id) => source.follow(id, update))
    return () => {
      current = false
      for (const unsubscribe of unsubscribers) unsubscribe()
    }
  }, [source, ids])
  return useMemo(() => ids.flatMap((id) => runs.get(id) ?? []), [ids, runs])
}

export default {
  title: "Compare",
  order: 110,
  applies: () => true,
  component: ComparePane,
} satisfies PaneDefinition
