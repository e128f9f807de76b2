// What the analyses say: claim, verdict, number, evidence, and what to try next.

import type { Finding } from "../model"
import { counted } from "../numbers"
import type { Pane, ViewProps } from "../pane"
import { Verdict } from "../parts/table"

function View({ groups, place }: ViewProps) {
  if (!groups.some((one) => one.findings.length)) return <p class="soft" role="status">the analyses have not said anything yet</p>
  return (
    <>
      {groups.filter((one) => one.findings.length).map((group) => (
        <section key={group.label}>
          <h2>{group.label} <small>{counted(group.runs.length, "run")}; intervals are 95 %, over seeds</small></h2>
          {group.findings.filter((one) => !open(one)).map((one) => <One key={one.code} finding={one} />)}
          <Open findings={group.findings.filter(open)} unfolded={place.pane === "all"} />
        </section>
      ))}
    </>
  )
}

function open(one: Finding): boolean {
  return one.supported === "undecided"
}

/** Claims that these runs do not decide: a line each until they are asked for. */
function Open({ findings, unfolded }: { findings: Finding[]; unfolded: boolean }) {
  if (!findings.length) return null
  return (
    <details open={unfolded}>
      <summary>{findings.length} {findings.length === 1 ? "claim" : "claims"} that these runs do not decide</summary>
      {findings.map((one) => <One key={one.code} finding={one} />)}
    </details>
  )
}

function One({ finding }: { finding: Finding }) {
  return (
    <article class="finding card">
      <h3><code>{finding.code}</code> {finding.claim}</h3>
      <p><Verdict finding={finding} /> <b>{finding.figure}</b></p>
      <p>{finding.evidence}</p>
      {finding.advice ? <p class="soft">→ {finding.advice}</p> : null}
    </article>
  )
}

export const findings: Pane = {
  key: "findings", title: "Findings", View,
  shown: (run, index) => (index.kind === "board" ? run !== null && run.state !== "broken" : index.groups.some((one) => one.findings.length > 0)),
}
