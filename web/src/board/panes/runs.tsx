// All runs of the folder, newest first, with state, progress and best score; to open or to compare.

import { useEffect, useReducer, useRef } from "preact/hooks"

import { formatNumber, stripDate, formatInteger } from "../../format"
import type { PaneDefinition, PaneProps } from "../../pane"
import { formatRoute } from "../../route"
import { RunState } from "../../components/run_state"
import { formatRunIds, parseComparedRuns } from "../compared_runs"
import type { FetchSource } from "../fetch_source"
import type { RunListEntry } from "../api"

const PAGE_SIZE = 200

function RunsPane({ source, route, navigate }: PaneProps) {
  const board = source as FetchSource
  const [, refresh] = useReducer((count: number) => count + 1, 0)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => board.watch(() => refresh(undefined)), [board])
  useEffect(() => {
    const timer = setInterval(() => refresh(undefined), 10_000) // updates the ages
    const focusSearch = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return
      event.preventDefault()
      field.current?.focus()
    }
    addEventListener("keydown", focusSearch)
    return () => {
      clearInterval(timer)
      removeEventListener("keydown", focusSearch)
    }
  }, [])
  const search = String(route.find ?? "").toLowerCase()
  const entries = [...board.entries.values()].reverse()
  const matches = entries.filter((entry) =>
    [entry.name, entry.sweep, entry.state, entry.task].some((text) =>
      text?.toLowerCase().includes(search),
    ),
  )
  const shown = route.all === "y" ? matches : matches.slice(0, PAGE_SIZE)
  const selectedIds = parseComparedRuns(route)
  const toggle = (id: string) => {
    const next = selectedIds.includes(id)
      ? selectedIds.filter((selected) => selected !== id)
      : [...selectedIds, id]
    navigate({ with: formatRunIds(next) })
  }
  const compare = () =>
    navigate({
      pane: "compare",
      run: selectedIds[0],
      with: formatRunIds(selectedIds.slice(1)),
      step: undefined,
    })
  const stateCounts = formatStateCounts(entries)
  if (!entries.length)
    return (
      <p class="muted">
        There are no runs in this folder yet: <code>neural train</code> creates one, and it appears
        here.
      </p>
    )
  return (
    <>
      <div class="toolbar">
        <input
          ref={field}
          type="search"
          placeholder="find (/)"
          aria-label="find a run"
          value={String(route.find ?? "")}
          onInput={(event) => navigate({ find: event.currentTarget.value || undefined })}
        />
        <span class="muted">
          {formatInteger(matches.length)} of {formatInteger(entries.length)} runs
          {stateCounts ? `: ${stateCounts}` : ""}
        </span>
        <button type="button" class="action" disabled={selectedIds.length < 2} onClick={compare}>
          compare {selectedIds.length || ""}
        </button>
      </div>
      <div class="scroll-x">
        <table class="runs">
          <thead>
            <tr>
              <th>
                <span class="visually-hidden">compare</span>
              </th>
              <th>run</th>
              <th>state</th>
              <th class="right">step</th>
              <th class="right">loss</th>
              <th class="right">best</th>
              <th class="right">last update</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((entry) => (
              <RunRow
                key={entry.id}
                run={entry}
                isSelected={selectedIds.includes(entry.id)}
                onToggle={() => toggle(entry.id)}
                href={formatRoute({ ...route, ...overviewRoute(entry.id) })}
                onOpen={() => navigate(overviewRoute(entry.id))}
              />
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < matches.length ? (
        <p>
          <button type="button" class="link" onClick={() => navigate({ all: "y" })}>
            show {formatInteger(matches.length - shown.length)} more
          </button>
        </p>
      ) : null}
    </>
  )
}

function overviewRoute(id: string) {
  return { pane: "overview", run: id, step: undefined }
}

function RunRow({
  run,
  isSelected,
  href,
  onToggle,
  onOpen,
}: {
  run: RunListEntry
  isSelected: boolean
  href: string
  onToggle: () => void
  onOpen: () => void
}) {
  if (run.kind === "broken") {
    return (
      <tr>
        <td />
        <td>{run.name}</td>
        <td>
          <RunState state="broken" />
        </td>
        <td colSpan={4} class="muted">
          {run.message}
        </td>
      </tr>
    )
  }
  const onClick = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return // let the browser open a tab or window
    event.preventDefault()
    onOpen()
  }
  const progress = run.steps ? Math.min(1, run.step / run.steps) : null
  return (
    <tr class={isSelected ? "selected" : ""}>
      <td>
        <input
          type="checkbox"
          aria-label={`compare ${run.name}`}
          checked={isSelected}
          onChange={onToggle}
        />
      </td>
      <td>
        <a class="link" href={href} onClick={onClick}>
          <RunName name={run.name} />
        </a>
        <div class="muted small">
          {[run.sweep ? `in ${run.sweep}` : "", run.task, run.message].filter(Boolean).join(" · ")}
        </div>
      </td>
      <td>
        <RunState state={run.state} />
      </td>
      <td class="right">
        {formatInteger(run.step)}
        {run.steps ? <span class="muted total-steps"> / {formatInteger(run.steps)}</span> : null}
        {progress !== null && run.state === "running" ? (
          <progress value={progress} aria-label="progress" />
        ) : null}
      </td>
      <td class="right">{formatNumber(run.loss)}</td>
      <td class="right">
        {run.best ? (
          <>
            {formatNumber(run.best.score)}{" "}
            <span class="muted small">{run.best.name.replace("valid/", "")}</span>
          </>
        ) : (
          "–"
        )}
      </td>
      <td class="right muted">
        {run.time ? formatAge(Math.max(0, Date.now() / 1000 - run.time)) : "–"}
      </td>
    </tr>
  )
}

/** The date prefix is muted; narrow screens break the line after it. */
function RunName({ name }: { name: string }) {
  const short = stripDate(name)
  return (
    <>
      <span class="muted">{name.slice(0, name.length - short.length)}</span>
      <wbr />
      {short}
    </>
  )
}

function formatAge(seconds: number): string {
  const [unit, size] = (
    [
      ["d", 172_800, 86_400],
      ["h", 5_400, 3_600],
      ["min", 90, 60],
    ] as const
  )
    .filter(([, from]) => seconds >= from)
    .map(([unit, , size]) => [unit, size] as const)[0] ?? ["s", 1]
  return `${Math.round(seconds / size)} ${unit} ago`
}

function formatStateCounts(runs: RunListEntry[]): string {
  const counts = new Map<string, number>()
  for (const run of runs) counts.set(run.state, (counts.get(run.state) ?? 0) + 1)
  return [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([state, count]) => `${formatInteger(count)} ${state}`)
    .join(", ")
}

export default {
  title: "Runs",
  order: 0,
  applies: () => true,
  component: RunsPane,
} satisfies PaneDefinition
