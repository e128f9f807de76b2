// The first view: a card per experiment and the table of runs; of one run its scores, main findings
// and settings.

import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInteger,
  formatName,
  formatNumber,
  formatSetting,
  formatTime,
  stripDate,
} from "../format"
import { countHeads, type Evaluation, type Finding, type Group, type Run } from "../run_data"
import { ExperimentsDigest } from "../digests/experiments"
import type { PaneDefinition, PaneProps } from "../pane"
import { formatMetric } from "../metric_names"
import { labelRuns } from "../run_labels"
import { CaptureSummary } from "../components/capture_summary"
import { CurveChart, filterSameTask } from "../components/curve_chart"
import { DescriptionList } from "../components/description_list"
import { ExperimentCards } from "../components/experiment_cards"
import { FigureView } from "../components/figure_view"
import { FoldTable } from "../components/fold_table"
import { RunState } from "../components/run_state"
import { RunTable, formatInterval } from "../components/run_table"
import { Verdict } from "../components/verdict"
import "../styles/overview.css"

const MAX_MAIN_FINDINGS = 6
/** Characters of a title that the header shows uncut on wide screens. */
const MAX_HEADER_TITLE = 36

function OverviewPane(props: PaneProps) {
  const { run, index, route } = props
  if (index.kind === "snapshot" && run) return <CaptureOverview {...props} run={run} />
  if (index.kind === "board") return run ? <RunOverview {...props} run={run} /> : <NoRun />
  if (!run) return <NoRun />
  if (index.runs.length === 1)
    return (
      <>
        <ExperimentCards {...props} />
        <RunOverview {...props} run={run} />
      </>
    )
  return route.run ? <RunOverview {...props} run={run} /> : <Story {...props} />
}

function NoRun() {
  return <p class="muted">no run yet</p>
}

/** All experiments of the page. */
function Story(props: PaneProps) {
  const { index } = props
  const experiments = index.experiments ?? []
  return (
    <>
      <h2 class={`page-title${index.title.length > MAX_HEADER_TITLE ? " long" : ""}`}>
        {index.title}
      </h2>
      <ExperimentCards {...props} />
      <RunTable {...props} />
      {experiments.map(({ title, task, data, cross_validation: table }) =>
        table ? <FoldTable key={`${task} ${data}`} title={title} table={table} /> : null,
      )}
    </>
  )
}

function CaptureOverview(props: PaneProps & { run: Run }) {
  const { run } = props
  const rows = run.changed_settings.map((key): [string, string] => [
    formatName(key),
    formatSetting(run.settings[key]),
  ])
  return (
    <>
      <h2 class="page-title">{stripDate(run.name)}</h2>
      <CaptureSummary {...props} />
      {rows.length ? (
        <section>
          <h2>Capture</h2>
          <DescriptionList rows={rows} />
        </section>
      ) : null}
    </>
  )
}

function RunOverview(props: PaneProps & { run: Run }) {
  const { run, runs, groups, navigate, index } = props
  const group = groups.find((entry) => entry.runs.includes(run.id))
  const taskRuns = filterSameTask(run, runs)
  const lossNames = ["valid/loss", "train/loss"].filter((name) =>
    taskRuns.some((taskRun) => name in taskRun.scalars),
  )
  const isAmongOthers = index.kind === "report" && index.runs.length > 1
  return (
    <>
      {isAmongOthers ? (
        <p class="screen-only">
          <button type="button" class="link" onClick={() => navigate({ run: undefined })}>
            ← all experiments
          </button>
        </p>
      ) : null}
      <div class="columns">
        <section class="card">
          <h2 title={run.name}>
            {labelRuns(index).get(run.id) ?? stripDate(run.name)} <RunState state={run.state} />
          </h2>
          <MainScore run={run} />
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
      <MainFindings {...props} group={group} />
      <KeySettings run={run} />
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
      <OtherSettings run={run} />
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

/** The score of the newest evaluation, or else of the best validation. */
function MainScore({ run }: { run: Run }) {
  if (run.evaluation) return <EvaluationScore {...run.evaluation} />
  if (!run.best) return null
  const { name, score, step } = run.best
  return (
    <p class="main-score">
      <b>{formatNumber(score)}</b>
      <span>
        {formatMetric(name)}{" "}
        <span class="muted">at the best validation, step {formatInteger(step)}</span>
      </span>
    </p>
  )
}

function EvaluationScore({ time, data, scores }: Evaluation) {
  const [main, ...others] = scores
  const interval = formatInterval(main)
  return (
    <>
      <p class="main-score">
        <b>{formatNumber(main.value)}</b>
        <span>
          {formatMetric(main.name)}{" "}
          <span class="muted">
            {interval === "–" ? "" : `(${interval}) `}
            {data ? `on ${data}, ` : ""}evaluated {formatTime(time)}
          </span>
        </span>
      </p>
      {others.length ? (
        <p class="muted">
          {others
            .map(({ name, value }) => `${formatMetric(name)} ${formatNumber(value)}`)
            .join(" · ")}
        </p>
      ) : null}
    </>
  )
}

/** Decided findings with their pictures: warnings first, then claims, then notes. */
function MainFindings(props: PaneProps & { group: Group | undefined }) {
  const { group, runs, source, navigate, route, theme } = props
  const findings = group?.findings ?? []
  if (!group || !findings.length) return null
  const decided = rankDecided(findings)
  return (
    <section>
      <h2>
        Main findings{" "}
        {group.runs.length > 1 ? (
          <small>
            about {group.label}, {formatCount(group.runs.length, "run")}
          </small>
        ) : null}
      </h2>
      <ul class="main-findings">
        {decided.slice(0, MAX_MAIN_FINDINGS).map((finding) => (
          <li key={finding.code} class="card">
            <p>
              <Verdict finding={finding} /> <b>{finding.claim}</b>{" "}
              <span class="muted">{finding.formatted}</span>
            </p>
            {finding.figure ? (
              <FigureView
                figure={finding.figure}
                runs={runs}
                source={source}
                navigate={navigate}
                route={route}
                theme={theme}
                isCard
              />
            ) : null}
            {finding.links.length ? (
              <p>
                {finding.links.slice(0, 6).map((link) => (
                  <button
                    type="button"
                    key={link.text}
                    class="link head-link"
                    onClick={() => navigate(link.route)}
                  >
                    {link.text}
                  </button>
                ))}
              </p>
            ) : null}
          </li>
        ))}
      </ul>
      {decided.length ? null : <p class="muted">No claim is decided by these runs so far.</p>}
      <p class="screen-only">
        <button type="button" class="link" onClick={() => navigate({ pane: "findings" })}>
          all {formatCount(findings.length, "check")}, {decided.length} decided, with their evidence
        </button>
      </p>
    </section>
  )
}

function rankDecided(findings: Finding[]): Finding[] {
  const rank = (finding: Finding) =>
    finding.kind === "warning" ? 0 : finding.kind === "note" ? 2 : 1
  return findings
    .filter((finding) => finding.supported !== "undecided")
    .sort((a, b) => rank(a) - rank(b))
}

/** Settings that differ from their defaults, and programs. */
function KeySettings({ run }: { run: Run }) {
  const programs = listPrograms(run)
  const keys = listKeySettings(run)
  return (
    <div class="columns">
      {keys.length ? (
        <section>
          <h2>Key settings</h2>
          <SettingList run={run} keys={keys} />
        </section>
      ) : null}
      {programs.map(([title, text]) => (
        <section key={title}>
          <h2>{title}</h2>
          <pre>{text}</pre>
        </section>
      ))}
    </div>
  )
}

function OtherSettings({ run }: { run: Run }) {
  const keySettings = new Set(listKeySettings(run))
  const keys = Object.keys(run.settings).filter(
    (key) => !keySettings.has(key) && !isProgram(run.settings[key]),
  )
  return keys.length ? (
    <details>
      <summary>All other settings ({keys.length})</summary>
      <SettingList run={run} keys={keys} />
    </details>
  ) : null
}

function SettingList({ run, keys }: { run: Run; keys: string[] }) {
  return <DescriptionList rows={keys.map((key) => [key, formatSetting(run.settings[key])])} />
}

/** Without what the program says, which is shown beside them: the optimizer would be listed twice. */
function listKeySettings(run: Run): string[] {
  const isInProgram = (value: unknown) =>
    typeof value === "string" && value.length > 3 && Boolean(run.program?.includes(value))
  return run.changed_settings.filter(
    (key) => !isProgram(run.settings[key]) && !isInProgram(run.settings[key]),
  )
}

/** Titles and texts; a program that is also a setting is listed once. */
function listPrograms(run: Run): [string, string][] {
  const others = Object.entries(run.settings).flatMap(([key, value]): [string, string][] =>
    isProgram(value) && value !== run.program ? [[`Program: ${formatName(key)}`, value]] : [],
  )
  return run.program ? [["The network", run.program], ...others] : others
}

function isProgram(value: unknown): value is string {
  return typeof value === "string" && value.trim().includes("\n")
}

function listFacts(run: Run): [string, string][] {
  const rows: [string, string][] = []
  rows.push([
    "step",
    formatInteger(run.step) + (run.steps ? ` of ${formatInteger(run.steps)}` : ""),
  ])
  if (run.best) {
    const { name, score, step, scores } = run.best
    if (run.evaluation)
      rows.push([
        "best validation",
        `${formatMetric(name)} ${formatNumber(score)}, step ${formatInteger(step)}`,
      ])
    const otherScores = Object.entries(scores)
      .filter(([other]) => other !== name)
      .map(([other, value]) => `${formatMetric(other)} ${formatNumber(value)}`)
    if (otherScores.length) rows.push(["other scores", otherScores.join(" · ")])
  }
  const { name, input_shape, output_shape, parameters } = run.network
  if (name) rows.push(["network", `${name}: ${input_shape} → ${output_shape}`])
  if (parameters) rows.push(["parameters", formatInteger(parameters)])
  if (run.layers.length)
    rows.push(["attention", `${formatCount(run.layers.length, "layer")} × ${describeHeads(run)}`])
  if (run.fold) rows.push(["fold", run.fold])
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

function describeHeads(run: Run): string {
  const counts = [...new Set(run.layers.map((_, layer) => countHeads(run, layer)))]
  return counts.length === 1 ? formatCount(counts[0], "head") : `${counts.join(" or ")} heads`
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
  digest: ExperimentsDigest,
  applies: ({ run, index }) => run !== null || index.kind !== "board",
} satisfies PaneDefinition
