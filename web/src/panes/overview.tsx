// Summary of a run: progress, best scores, losses, main findings, settings and environment.

import {
  formatBytes,
  formatCount,
  formatTime,
  formatNumber,
  formatSetting,
  formatDuration,
  formatInteger,
} from "../format"
import type { Finding, Run } from "../run_data"
import type { PaneDefinition, PaneProps } from "../pane"
import { DescriptionList } from "../components/description_list"
import { Verdict } from "../components/verdict"
import { CurveChart, filterSameTask } from "../components/curve_chart"
import { RunState } from "../components/run_state"

function OverviewPane(props: PaneProps) {
  const { run, runs, groups, navigate, index } = props
  if (!run) return <p class="muted">no run yet</p>
  const findings = groups.find((group) => group.runs.includes(run.id))?.findings ?? []
  const decided = rankDecided(findings)
  const taskRuns = filterSameTask(run, runs)
  const lossNames = ["valid/loss", "train/loss"].filter((name) =>
    taskRuns.some((taskRun) => name in taskRun.scalars),
  )
  const changed = run.changed_settings.map((key): [string, string] => [
    key,
    formatSetting(run.settings[key]),
  ])
  const rest = Object.keys(run.settings).filter(
    (key) => !run.changed_settings.includes(key) && run.settings[key] !== run.program,
  )
  return (
    <>
      {runs.length > 1 ? <RunTable {...props} /> : null}
      <div class="columns">
        <section class="card">
          <h2>
            {run.name} {run.state === "snapshot" ? null : <RunState state={run.state} />}
          </h2>
          <DescriptionList rows={listFacts(run)} />
          {run.notes.map((text) => (
            <p key={text} class="note">
              {text}
            </p>
          ))}
        </section>
        {lossNames.length ? (
          <section class="card">
            {lossNames.map((name) => (
              <CurveChart key={name} {...props} runs={taskRuns} name={name} height={150} />
            ))}
          </section>
        ) : null}
      </div>
      {findings.length ? (
        <section>
          <h2>Findings</h2>
          <ul class="finding-list">
            {decided.slice(0, 6).map((finding) => (
              <li key={finding.code}>
                <Verdict finding={finding} /> {finding.claim}{" "}
                <span class="muted">{finding.formatted}</span>
              </li>
            ))}
          </ul>
          {decided.length ? null : (
            <p class="muted">no claim is decided by this run alone so far</p>
          )}
          <p>
            <button type="button" class="link" onClick={() => navigate({ pane: "findings" })}>
              all {findings.length} findings, with their evidence
            </button>
          </p>
        </section>
      ) : null}
      <div class="columns">
        {changed.length ? (
          <section>
            <h2>
              {index.kind === "snapshot" ? "Snapshot" : "Settings that differ from the default"}
            </h2>
            <DescriptionList rows={changed} />
          </section>
        ) : null}
        {run.program ? (
          <section>
            <h2>The network</h2>
            <pre>{run.program}</pre>
          </section>
        ) : null}
      </div>
      {run.events.length ? (
        <section>
          <h2>Events</h2>
          <DescriptionList
            rows={run.events.map((event) => [
              `step ${formatInteger(event.step)}`,
              `${event.kind}: ${event.text}`,
            ])}
          />
        </section>
      ) : null}
      {run.checkpoints.length ? (
        <section>
          <h2>Checkpoints</h2>
          <DescriptionList
            rows={run.checkpoints.map((checkpoint) => [
              `step ${formatInteger(checkpoint.step)}`,
              formatBytes(checkpoint.bytes) + (checkpoint.best ? ", best" : ""),
            ])}
          />
        </section>
      ) : null}
      {rest.length ? (
        <details>
          <summary>All other settings ({rest.length})</summary>
          <DescriptionList rows={rest.map((key) => [key, formatSetting(run.settings[key])])} />
        </details>
      ) : null}
      {Object.keys(run.environment).length ? (
        <details>
          <summary>Environment</summary>
          <DescriptionList
            rows={Object.entries(run.environment).map(([key, value]) => [
              key,
              Array.isArray(value) ? value.join(" ") : formatEnvironment(value),
            ])}
          />
        </details>
      ) : null}
    </>
  )
}

/** Decided findings: warnings first, then claims, then notes. */
function rankDecided(findings: Finding[]): Finding[] {
  const rank = (finding: Finding) =>
    finding.kind === "warning" ? 0 : finding.kind === "note" ? 2 : 1
  return findings
    .filter((finding) => finding.supported !== "undecided")
    .sort((a, b) => rank(a) - rank(b))
}

function listFacts(run: Run): [string, string][] {
  const rows: [string, string][] = []
  if (run.state !== "snapshot")
    rows.push([
      "step",
      formatInteger(run.step) + (run.steps ? ` of ${formatInteger(run.steps)}` : ""),
    ])
  if (run.best) {
    const { name, score, step, scores } = run.best
    const otherScores = Object.entries(scores)
      .filter(([other]) => other !== name)
      .map(([other, value]) => `${other.replace("valid/", "")} ${formatNumber(value)}`)
    rows.push(["best", `${name} ${formatNumber(score)}, step ${formatInteger(step)}`])
    if (otherScores.length) rows.push(["other scores", otherScores.join(" · ")])
  }
  const { name, input_shape, output_shape, parameters } = run.network
  if (name) rows.push(["network", `${name}: ${input_shape} → ${output_shape}`])
  if (parameters) rows.push(["parameters", formatInteger(parameters)])
  if (run.layers.length)
    rows.push(["attention", `${formatCount(run.layers.length, "layer")}, ${formatHeadCounts(run)}`])
  if (run.seed !== null) rows.push(["seed", String(run.seed)])
  if (run.started)
    rows.push([
      "started",
      formatTime(run.started) +
        (run.time
          ? `, ${run.state === "running" ? "for" : "took"} ${formatDuration(run.time - run.started)}`
          : ""),
    ])
  if (run.message) rows.push(["message", run.message])
  return rows
}

function formatHeadCounts(run: Run): string {
  const counts = [...new Set(run.heads)]
  return counts.length === 1 ? formatCount(counts[0], "head") : `${counts.join(" or ")} heads`
}

function RunTable({ runs, groups, run, navigate }: PaneProps) {
  return (
    <section>
      <h2>{runs.length} runs</h2>
      <div class="scroll-x">
        <table class="list">
          <thead>
            <tr>
              <th>run</th>
              <th>experiment</th>
              <th>seed</th>
              <th>state</th>
              <th class="right">step</th>
              <th class="right">best</th>
            </tr>
          </thead>
          <tbody>
            {runs.map((entry) => (
              <tr key={entry.id} class={entry.id === run?.id ? "selected" : ""}>
                <td>
                  <button type="button" class="link" onClick={() => navigate({ run: entry.id })}>
                    {entry.name}
                  </button>
                </td>
                <td>{groups.find((group) => group.runs.includes(entry.id))?.label ?? ""}</td>
                <td>{entry.seed ?? "–"}</td>
                <td>
                  <RunState state={entry.state} />
                </td>
                <td class="right">{formatInteger(entry.step)}</td>
                <td class="right">
                  {entry.best ? `${entry.best.name} ${formatNumber(entry.best.score)}` : "–"}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function formatEnvironment(value: unknown): string {
  if (value && typeof value === "object")
    return Object.entries(value)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ")
  return formatSetting(value)
}

export default {
  title: "Overview",
  order: 10,
  component: OverviewPane,
  applies: ({ run, index }) => run !== null || index.kind !== "board",
} satisfies PaneDefinition
