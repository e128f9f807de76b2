// Runs set beside each other: their curves in one picture, and the maps of two checkpoints subtracted.

import { useEffect, useMemo, useState } from "preact/hooks"

import { lineColour } from "../draw/colours"
import type { Group, Run } from "../model"
import type { Pane, ViewProps } from "../pane"
import { CurveChart } from "../panes/curves"
import { said } from "../numbers"
import { Toggle } from "../parts/table"
import type { DataSource } from "../source"
import { Difference } from "./difference"
import { joined, others } from "./others"

const MOST = 8

function View(props: ViewProps) {
  const { source, index, run, place, go, theme } = props
  const ids = useMemo(() => [...new Set([...(place.run ? [place.run] : []), ...others(place)])].slice(0, MOST), [place.run, place.with])
  const runs = useFollowed(source, ids)
  const groups: Group[] = runs.map((one) => ({ label: one.name, data: "", runs: [one.id], findings: [] }))
  const left = index.runs.filter((one) => !ids.includes(one.id) && one.state !== "broken")
  const set = (next: string[]) => go({ run: next[0], with: joined(next.slice(1)) })
  const names = [...new Set(runs.flatMap((one) => Object.keys(one.scalars)))]
    .filter((name) => runs.filter((one) => name in one.scalars).length > 1).sort((x, y) => rank(x) - rank(y) || x.localeCompare(y))
  const measures = [...new Set(runs.flatMap((one) => Object.keys(one.measures)))].filter((name) => runs.filter((one) => name in one.measures).length > 1)
  const shared = { ...props, runs, groups }
  return (
    <>
      <div class="tools">
        {runs.map((one, at) => (
          <span key={one.id} class="chip"><i style={{ background: lineColour(at, theme) }} />{one.name}
            <button type="button" aria-label={`leave out ${one.name}`} onClick={() => set(ids.filter((id) => id !== one.id))}>×</button>
          </span>
        ))}
        {left.length && ids.length < MOST ? (
          <select aria-label="add a run" value="" onChange={(event) => set([...ids, event.currentTarget.value])}>
            <option value="">add a run…</option>
            {[...left].reverse().map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
          </select>
        ) : null}
        <Toggle label="logarithmic" on={place.log === "y"} onChange={(on) => go({ log: on ? "y" : undefined })} />
        <Toggle label="smooth" on={place.smooth === "y"} onChange={(on) => go({ smooth: on ? "y" : undefined })} />
      </div>
      {runs.length < ids.length ? <p class="soft" role="status">loading…</p> : ids.length < 2 ? <p class="soft">{run ? "Add a second run above; or subtract two steps of this one, below." : "Choose two runs above, or tick them in the list of runs."}</p> : null}
      {runs.length > 1 ? <Settings runs={runs} /> : null}
      {runs.length > 1 ? <div class="charts">{names.map((name) => <CurveChart key={name} {...shared} name={name} />)}</div> : null}
      {runs.length ? <Difference {...shared} /> : null}
      {runs.length > 1 && measures.length ? <h2>Attention, mean over layers and heads</h2> : null}
      {runs.length > 1 ? <div class="charts">{measures.map((name) => <CurveChart key={name} {...shared} name={`attention/${name}`} />)}</div> : null}
    </>
  )
}

function rank(name: string): number {
  return name === "train/loss" ? 0 : name === "valid/loss" ? 1 : name.startsWith("valid/") ? 2 : 3
}

/** What was set differently. */
function Settings({ runs }: { runs: Run[] }) {
  const keys = [...new Set(runs.flatMap((one) => Object.keys(one.settings)))].filter((key) => key !== "name" && key !== "network")
  const apart = keys.filter((key) => new Set(runs.map((one) => said(one.settings[key]))).size > 1).sort()
  if (!apart.length) return <p class="soft">All settings are alike{new Set(runs.map((one) => one.program)).size > 1 ? "; the programs are not" : ""}.</p>
  return (
    <div class="wide apart">
      <table>
        <thead><tr><th>what differs</th>{runs.map((one) => <th key={one.id}>{one.name}</th>)}</tr></thead>
        <tbody>{apart.map((key) => <tr key={key}><td class="soft">{key}</td>{runs.map((one) => <td key={one.id}>{short(one.settings[key])}</td>)}</tr>)}</tbody>
      </table>
    </div>
  )
}

function short(value: unknown): string {
  if (value === null || value === undefined) return "–"
  const text = said(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}

/** Several runs and what is new in them. */
function useFollowed(source: DataSource, ids: string[]): Run[] {
  const [runs, setRuns] = useState(new Map<string, Run>())
  useEffect(() => {
    let current = true
    const take = (run: Run) => current && setRuns((before) => new Map(before).set(run.id, run))
    for (const id of ids) void source.run(id).then(take)
    const stops = ids.map((id) => source.follow(id, take))
    return () => {
      current = false
      for (const stop of stops) stop()
    }
  }, [source, ids])
  return useMemo(() => ids.flatMap((id) => runs.get(id) ?? []), [ids, runs])
}

export const compare: Pane = { key: "compare", title: "Compare", View }
