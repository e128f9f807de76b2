// Findings of the analyses: what to do, then claim, verdict, number, evidence and advice.

import type { Finding } from "../run_data"
import { formatCount } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import { Verdict } from "../components/verdict"

function FindingsPane({ groups, route }: PaneProps) {
  if (!groups.some((group) => group.findings.length))
    return (
      <p class="muted" role="status">
        no findings yet
      </p>
    )
  return (
    <>
      {groups
        .filter((group) => group.findings.length)
        .map((group) => (
          <section key={group.label}>
            <h2>
              {group.label}{" "}
              <small>{formatCount(group.runs.length, "run")}; intervals are 95 %, over seeds</small>
            </h2>
            <Advice findings={group.findings} />
            {group.findings
              .filter((finding) => !isUndecided(finding) && finding.advice_rank === null)
              .map((finding) => (
                <FindingCard key={finding.code} finding={finding} />
              ))}
            <UndecidedFindings
              findings={group.findings.filter(isUndecided)}
              isOpen={route.pane === "all"}
            />
          </section>
        ))}
    </>
  )
}

/** What to do about the runs, most important first. */
function Advice({ findings }: { findings: Finding[] }) {
  const advice = findings
    .filter((finding) => finding.advice_rank !== null)
    .sort((first, second) => first.advice_rank! - second.advice_rank!)
  if (!advice.length) return null
  return (
    <section class="card">
      <h3>What to do</h3>
      <ol>
        {advice.map((finding) => (
          <li key={finding.code}>
            <b>{finding.claim}</b> <code>{finding.code}</code>
            <br />
            {finding.evidence}
            <br />→ {finding.advice}
          </li>
        ))}
      </ol>
    </section>
  )
}

function isUndecided(finding: Finding): boolean {
  return finding.supported === "undecided"
}

/** Claims that these runs do not decide, collapsed. */
function UndecidedFindings({ findings, isOpen }: { findings: Finding[]; isOpen: boolean }) {
  if (!findings.length) return null
  return (
    <details open={isOpen}>
      <summary>
        {findings.length} {findings.length === 1 ? "claim" : "claims"} not decided by these runs
      </summary>
      {findings.map((finding) => (
        <FindingCard key={finding.code} finding={finding} />
      ))}
    </details>
  )
}

function FindingCard({ finding }: { finding: Finding }) {
  return (
    <article class="finding card">
      <h3>
        <code>{finding.code}</code> {finding.claim}
      </h3>
      <p>
        <Verdict finding={finding} /> <b>{finding.formatted}</b>
      </p>
      <p>{finding.evidence}</p>
      {finding.advice ? <p class="muted">→ {finding.advice}</p> : null}
    </article>
  )
}

export default {
  title: "Findings",
  order: 50,
  component: FindingsPane,
  applies: ({ run, index }) =>
    index.kind === "board"
      ? run !== null && run.state !== "broken"
      : index.groups.some((group) => group.findings.length > 0),
} satisfies PaneDefinition
