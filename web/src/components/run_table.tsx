// All runs of a page: a row per group of runs that differ only by seed or fold, which unfolds.

import { Fragment } from "preact"
import { useMemo, useState } from "preact/hooks"

import { formatCount, formatDuration, formatInteger, formatName, formatNumber } from "../format"
import { formatMetric } from "../metric_names"
import type { PaneProps } from "../pane"
import { labelRuns } from "../run_labels"
import type { Group, Interval, Run } from "../run_data"
import { RunState } from "./run_state"
import "../styles/run_table.css"

/** Groups beyond this number are shown on demand. */
const MAX_SHOWN_GROUPS = 25

const INTERVAL_HELP =
  "95 % confidence interval of the mean over seeds, or over folds, which share data"

type TableProps = Pick<PaneProps, "index" | "runs" | "navigate">

interface Row {
  group: Group
  runs: Run[]
}

export function RunTable({ index, runs, navigate }: TableProps) {
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const [isComplete, setComplete] = useState(false)
  const rows = useMemo(() => listRows(index.groups, runs), [index.groups, runs])
  const labels = useMemo(() => labelRuns(index), [index])
  const experimentOf = useMemo(
    () =>
      new Map(
        (index.experiments ?? []).flatMap((experiment) =>
          experiment.groups.map((label): [string, string] => [label, experiment.title]),
        ),
      ),
    [index.experiments],
  )
  // of single runs there is no mean
  const hasRepetitions = rows.some((row) => row.runs.length > 1)
  const shown = isComplete ? rows : rows.slice(0, MAX_SHOWN_GROUPS)
  const toggle = (label: string) => {
    const next = new Set(unfolded)
    if (!next.delete(label)) next.add(label)
    setUnfolded(next)
  }
  return (
    <section>
      <h2>
        {formatCount(runs.length, "run")} <small>scores are those of the best validation</small>
      </h2>
      <div class="scroll-x">
        <table class="list run-table">
          <thead>
            <tr>
              <th scope="col">experiment</th>
              <th scope="col" class="wide">
                task
              </th>
              <th scope="col">runs</th>
              <th scope="col" class="wide">
                state
              </th>
              <th scope="col" class="right wide">
                steps
              </th>
              <th scope="col">score</th>
              <th scope="col" class="right" title="mean over the runs of the row">
                {hasRepetitions ? "mean" : "best"}
              </th>
              {hasRepetitions ? (
                <>
                  <th scope="col" class="right" title={INTERVAL_HELP}>
                    95 % interval
                  </th>
                  <th
                    scope="col"
                    class="right wide"
                    title="smallest and largest score of a run of the row"
                  >
                    range
                  </th>
                </>
              ) : null}
              <th
                scope="col"
                class="right wide"
                title="training time of all runs of the row together"
              >
                time
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => {
              const { group } = row
              const isOpen = unfolded.has(group.label)
              return (
                <Fragment key={group.label}>
                  <GroupRow
                    {...row}
                    hasRepetitions={hasRepetitions}
                    experiment={experimentOf.get(group.label)}
                    isOpen={isOpen}
                    onToggle={() => toggle(group.label)}
                    onRun={(run) => navigate({ pane: "overview", run })}
                  />
                  {isOpen
                    ? row.runs.map((run) => (
                        <RunRow
                          key={run.id}
                          run={run}
                          hasRepetitions={hasRepetitions}
                          label={labels.get(run.id) ?? run.name}
                          onRun={() => navigate({ pane: "overview", run: run.id })}
                        />
                      ))
                    : null}
                </Fragment>
              )
            })}
          </tbody>
        </table>
      </div>
      {rows.length > shown.length ? (
        <p>
          <button type="button" class="link" onClick={() => setComplete(true)}>
            show {rows.length - shown.length} more experiments
          </button>
        </p>
      ) : null}
    </section>
  )
}

function GroupRow({
  group,
  runs,
  hasRepetitions,
  experiment,
  isOpen,
  onToggle,
  onRun,
}: Row & {
  hasRepetitions: boolean
  experiment: string | undefined
  isOpen: boolean
  onToggle: () => void
  onRun: (id: string) => void
}) {
  const { score } = group
  const isSingle = runs.length === 1
  return (
    <tr class="group">
      <td>
        {isSingle ? (
          <button type="button" class="link" onClick={() => onRun(runs[0].id)}>
            {group.label}
          </button>
        ) : (
          <button type="button" class="link" aria-expanded={isOpen} onClick={onToggle}>
            <span class="fold" aria-hidden="true">
              {isOpen ? "▾" : "▸"}
            </span>{" "}
            {group.label}
          </button>
        )}{" "}
        {experiment && experiment !== group.label ? <span class="muted">{experiment}</span> : null}
      </td>
      <td class="wide">{formatName(String(runs[0].settings.task ?? "–"))}</td>
      <td>{describeRepetitions(runs)}</td>
      <td class="wide">
        <GroupState runs={runs} />
      </td>
      <td class="right wide">
        {formatRange(
          runs.map((run) => run.step),
          formatInteger,
        )}
      </td>
      <td>{score ? formatMetric(score.name) : "–"}</td>
      <td class="right">
        <b>{score ? formatNumber(score.estimate.value) : "–"}</b>
      </td>
      {hasRepetitions ? (
        <>
          <td class="right">{score ? formatInterval(score.estimate) : "–"}</td>
          <td class="right wide">
            {score && !isSingle ? formatRange([score.low, score.high]) : "–"}
          </td>
        </>
      ) : null}
      <td class="right wide">{formatTotalTime(runs)}</td>
    </tr>
  )
}

function RunRow({
  run,
  label,
  hasRepetitions,
  onRun,
}: {
  run: Run
  label: string
  hasRepetitions: boolean
  onRun: () => void
}) {
  return (
    <tr class="repetition">
      <td>
        <button type="button" class="link" title={run.name} onClick={onRun}>
          {label}
        </button>
      </td>
      <td class="wide" />
      <td>{describeRepetitions([run])}</td>
      <td class="wide">
        <RunState state={run.state} />
      </td>
      <td class="right wide">{formatInteger(run.step)}</td>
      <td>{run.best ? formatMetric(run.best.name) : "–"}</td>
      <td class="right">{run.best ? formatNumber(run.best.score) : "–"}</td>
      {hasRepetitions ? (
        <>
          <td />
          <td class="wide" />
        </>
      ) : null}
      <td class="right wide">{formatTotalTime([run])}</td>
    </tr>
  )
}

/** The state of all runs, or the number of runs in each state. */
function GroupState({ runs }: { runs: Run[] }) {
  const counts = new Map<string, number>()
  for (const { state } of runs) counts.set(state, (counts.get(state) ?? 0) + 1)
  return (
    <>
      {[...counts].map(([state, count]) => (
        <Fragment key={state}>
          {counts.size > 1 ? `${count} ` : ""}
          <RunState state={state} />{" "}
        </Fragment>
      ))}
    </>
  )
}

/** Groups with their runs. Runs of no group are earlier repetitions of one: each has its own row. */
function listRows(groups: Group[], runs: Run[]): Row[] {
  const byId = new Map(runs.map((run) => [run.id, run]))
  const rows = groups.map((group) => ({
    group,
    runs: group.runs.flatMap((id) => byId.get(id) ?? []),
  }))
  const grouped = new Set(groups.flatMap((group) => group.runs))
  const rest = runs.filter((run) => !grouped.has(run.id))
  return [
    ...rows.filter((row) => row.runs.length > 0),
    ...rest.map((run) => ({
      group: { label: run.name, data: "", runs: [run.id], findings: [] },
      runs: [run],
    })),
  ]
}

/** `5 seeds`, `5 folds`, `5 folds × 2 seeds`, `seed 0`. */
export function describeRepetitions(runs: Run[]): string {
  const folds = new Set(runs.flatMap((run) => run.fold ?? []))
  const seeds = new Set(runs.map((run) => run.seed))
  if (runs.length === 1) {
    const parts = [
      ...[...folds].map((fold) => `fold ${fold}`),
      ...[...seeds].flatMap((seed) => (seed === null ? [] : `seed ${seed}`)),
    ]
    return parts.join(", ") || "–"
  }
  if (folds.size > 1) {
    const perFold = runs.length / folds.size
    return (
      formatCount(folds.size, "fold") +
      (perFold > 1 && Number.isInteger(perFold) ? ` × ${formatCount(perFold, "seed")}` : "")
    )
  }
  return seeds.size === runs.length
    ? formatCount(runs.length, "seed")
    : formatCount(runs.length, "run")
}

export function formatInterval({ low, high }: Interval): string {
  return low === null || high === null ? "–" : `${formatNumber(low)} … ${formatNumber(high)}`
}

function formatRange(values: number[], format: (value: number) => string = formatNumber): string {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return low === high ? format(low) : `${format(low)} … ${format(high)}`
}

function formatTotalTime(runs: Run[]): string {
  const durations = runs.flatMap(({ started, time }) => (started && time ? time - started : []))
  return durations.length ? formatDuration(durations.reduce((sum, value) => sum + value, 0)) : "–"
}
