// Findings of the analyses: claim, verdict, number, evidence and advice.

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
            {group.findings
              .filter((finding) => !isUndecided(finding))
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
