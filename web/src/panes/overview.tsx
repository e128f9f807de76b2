// What was trained, how far it is, what came out, with what settings.

import { bytes, counted, moment, number, said, span, whole } from "../numbers"
import type { Finding, Run } from "../model"
import type { Pane, ViewProps } from "../pane"
import { Facts, Verdict } from "../parts/table"
import { alike, CurveChart } from "./curves"

function View(props: ViewProps) {
  const { run, runs, groups, go, index } = props
  if (!run) return <p class="soft">there is no run yet</p>
  const found = groups.find((one) => one.runs.includes(run.id))?.findings ?? []
  const decided = important(found)
  const drawn = alike(run, runs)
  const main = ["valid/loss", "train/loss"].filter((name) => drawn.some((one) => name in one.scalars))
  const changed = run.changed.map((key): [string, string] => [key, said(run.settings[key])])
  const rest = Object.keys(run.settings).filter((key) => !run.changed.includes(key) && run.settings[key] !== run.program)
  return (
    <>
      {runs.length > 1 ? <Runs {...props} /> : null}
      <div class="columns">
        <section class="card">
          <h2>{run.name} {run.state === "look" ? null : <State state={run.state} />}</h2>
          <Facts rows={top(run)} />
          {run.remarks.map((text) => <p key={text} class="remark">{text}</p>)}
        </section>
        {main.length ? <section class="card">{main.map((name) => <CurveChart key={name} {...props} runs={drawn} name={name} height={150} />)}</section> : null}
      </div>
      {found.length ? (
        <section>
          <h2>What it says</h2>
          <ul class="said">
            {decided.slice(0, 6).map((one) => (
              <li key={one.code}><Verdict finding={one} /> {one.claim} <span class="soft">{one.figure}</span></li>
            ))}
          </ul>
          {decided.length ? null : <p class="soft">nothing is decided by this run alone, so far</p>}
          <p><button type="button" class="link" onClick={() => go({ pane: "findings" })}>all {found.length} findings, with their evidence</button></p>
        </section>
      ) : null}
      <div class="columns">
        {changed.length ? <section><h2>{index.kind === "look" ? "The look" : "Settings that are not the default"}</h2><Facts rows={changed} /></section> : null}
        {run.program ? <section><h2>The network</h2><pre>{run.program}</pre></section> : null}
      </div>
      {run.events.length ? (
        <section>
          <h2>Events</h2>
          <Facts rows={run.events.map((one) => [`step ${whole(one.step)}`, `${one.kind}: ${one.text}`])} />
        </section>
      ) : null}
      {run.checkpoints.length ? (
        <section>
          <h2>Checkpoints</h2>
          <Facts rows={run.checkpoints.map((one) => [`step ${whole(one.step)}`, bytes(one.bytes) + (one.best ? ", the best" : "")])} />
        </section>
      ) : null}
      {rest.length ? (
        <details>
          <summary>All other settings ({rest.length})</summary>
          <Facts rows={rest.map((key) => [key, said(run.settings[key])])} />
        </details>
      ) : null}
      {Object.keys(run.environment).length ? (
        <details>
          <summary>What it was made with</summary>
          <Facts rows={Object.entries(run.environment).map(([key, value]) => [key, Array.isArray(value) ? value.join(" ") : packages(value)])} />
        </details>
      ) : null}
    </>
  )
}

/** What was decided: warnings first, then claims, then notes. */
function important(found: Finding[]): Finding[] {
  const rank = (one: Finding) => (one.kind === "warning" ? 0 : one.kind === "note" ? 2 : 1)
  return found.filter((one) => one.supported !== "undecided").sort((a, b) => rank(a) - rank(b))
}

function top(run: Run): [string, string][] {
  const rows: [string, string][] = []
  if (run.state !== "look") rows.push(["step", whole(run.step) + (run.steps ? ` of ${whole(run.steps)}` : "")])
  if (run.best) {
    const { name, score, step, scores } = run.best
    const others = Object.entries(scores).filter(([other]) => other !== name).map(([other, value]) => `${other.replace("valid/", "")} ${number(value)}`)
    rows.push(["best", `${name} ${number(score)}, step ${whole(step)}`])
    if (others.length) rows.push(["also", others.join(" · ")])
  }
  const { name, takes, gives, parameters } = run.network
  if (name) rows.push(["network", `${name}: ${takes} → ${gives}`])
  if (parameters) rows.push(["parameters", whole(parameters)])
  if (run.layers.length) rows.push(["attention", `${counted(run.layers.length, "layer")}, ${heads(run)}`])
  if (run.seed !== null) rows.push(["seed", String(run.seed)])
  if (run.started) rows.push(["begun", moment(run.started) + (run.time ? `, ${run.state === "running" ? "for" : "took"} ${span(run.time - run.started)}` : "")])
  if (run.message) rows.push(["said", run.message])
  return rows
}

function heads(run: Run): string {
  const each = [...new Set(run.heads)]
  return each.length === 1 ? counted(each[0], "head") : `${each.join(" or ")} heads`
}

function Runs({ runs, groups, run, go }: ViewProps) {
  return (
    <section>
      <h2>{runs.length} runs</h2>
      <div class="wide">
        <table class="list">
          <thead><tr><th>run</th><th>experiment</th><th>seed</th><th>state</th><th class="right">step</th><th class="right">best</th></tr></thead>
          <tbody>
            {runs.map((one) => (
              <tr key={one.id} class={one.id === run?.id ? "chosen" : ""}>
                <td><button type="button" class="link" onClick={() => go({ run: one.id })}>{one.name}</button></td>
                <td>{groups.find((group) => group.runs.includes(one.id))?.label ?? ""}</td>
                <td>{one.seed ?? "–"}</td>
                <td><State state={one.state} /></td>
                <td class="right">{whole(one.step)}</td>
                <td class="right">{one.best ? `${one.best.name} ${number(one.best.score)}` : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

export function State({ state }: { state: string }) {
  return <span class={`state ${/^[a-z]+$/.test(state) ? state : ""}`}>{state}</span>
}

function packages(value: unknown): string {
  if (value && typeof value === "object") return Object.entries(value).map(([name, version]) => `${name} ${version}`).join(", ")
  return said(value)
}

export const overview: Pane = { key: "overview", title: "Overview", View, shown: (run, index) => run !== null || index.kind !== "board" }
