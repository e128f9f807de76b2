// Findings of the analyses, in the order of `neural analyze`: what to do, what happened, claims over
// seeds, and one table of what these runs do not decide.

import { useState } from "preact/hooks"

import { formatCount, stripDate } from "../format"
import { FindingsDigest } from "../digests/findings"
import type { PaneDefinition, PaneProps } from "../pane"
import type { Navigate } from "../route"
import type { Finding, Group, Run } from "../run_data"
import { FigureView } from "../components/figure_view"
import { findRun, LinkedText } from "../components/linked_text"
import { Verdict } from "../components/verdict"
import { ViewLink } from "../components/view_link"
import "../styles/findings.css"

function FindingsPane(props: PaneProps) {
  const groups = props.groups.filter((group) => group.findings.length)
  if (!groups.length)
    return (
      <p class="muted" role="status">
        no findings yet
      </p>
    )
  return (
    <>
      {groups.map((group, position) =>
        position < MAX_OPEN_GROUPS || group.runs.includes(props.run?.id ?? "") ? (
          <GroupFindings key={group.label} {...props} group={group} />
        ) : (
          <FoldedGroup key={group.label} {...props} group={group} />
        ),
      )}
    </>
  )
}

/** Further groups are folded, except the one of the selected run. */
const MAX_OPEN_GROUPS = 6

type GroupProps = PaneProps & { group: Group }

/** A group whose findings are drawn when it is opened. */
function FoldedGroup(props: GroupProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {props.group.label}: {formatCount(props.group.findings.length, "check")}
      </summary>
      {isOpen ? <GroupFindings {...props} /> : null}
    </details>
  )
}

function GroupFindings({ group, ...props }: GroupProps) {
  const runs = props.runs.filter((run) => group.runs.includes(run.id))
  const { findings } = group
  const advised = findings
    .filter((finding) => finding.advice_rank !== null)
    .sort((first, second) => first.advice_rank! - second.advice_rank!)
  const decided = findings.filter(
    (finding) => finding.supported !== "undecided" && finding.advice_rank === null,
  )
  const sections: [title: string, findings: Finding[]][] = [
    ["What to do", advised],
    ["What happened", decided.filter((finding) => finding.kind !== "claim")],
    ["Claims, over seeds", decided.filter((finding) => finding.kind === "claim")],
  ]
  const undecided = findings.filter((finding) => finding.supported === "undecided")
  return (
    <section class="finding-group">
      <h2>
        {group.label} <small>{describeGroup(group)}</small>
      </h2>
      {sections
        .filter(([, members]) => members.length)
        .map(([title, members]) => (
          <section key={title}>
            <h3>{title}</h3>
            <div class="finding-cards">
              {members.map((finding) => (
                <FindingCard key={finding.code} {...props} runs={runs} finding={finding} />
              ))}
            </div>
          </section>
        ))}
      <UndecidedClaims
        findings={undecided.filter((finding) => finding.kind === "claim")}
        navigate={props.navigate}
      />
      <NotExamined
        findings={undecided.filter((finding) => finding.kind !== "claim")}
        navigate={props.navigate}
      />
    </section>
  )
}

/** Only several runs have intervals over seeds, and only claims. */
function describeGroup({ runs, findings }: Group): string {
  const count = formatCount(runs.length, "run")
  const hasInterval = runs.length > 1 && findings.some((finding) => finding.number.low !== null)
  return hasInterval ? `${count}; intervals are 95 %, over seeds` : count
}

type CardProps = PaneProps & { finding: Finding; runs: Run[] }

function FindingCard({ finding, ...props }: CardProps) {
  const { runs, navigate } = props
  const isAdvice = finding.advice_rank !== null
  // roles have many pictures; problems of single heads have few
  const isWide = finding.figure?.kind === "head_grid" && finding.figure.tone === "note"
  const otherLinks = finding.links.filter(({ text }) => !finding.evidence.includes(text))
  return (
    <article class={`finding card${isWide ? " wide" : ""}`} data-code={finding.code}>
      <h3>
        <code class="code">{finding.code}</code>
        {isAdvice ? <span class="rank">{finding.advice_rank}</span> : null}
        {capitalize(finding.claim)}
      </h3>
      <div class="finding-body">
        <div>
          <p>
            {isAdvice ? null : <Verdict finding={finding} />}{" "}
            <span class="number">{finding.formatted}</span>
          </p>
          <p class="evidence">
            <LinkedText
              text={finding.evidence}
              links={finding.links}
              runs={runs}
              navigate={navigate}
            />
          </p>
          {otherLinks.length ? (
            <p>
              {otherLinks.slice(0, 8).map(({ text, route }, index) => [
                index ? ", " : "",
                <ViewLink
                  key={text}
                  route={{ ...route, run: findRun(route.run, runs)?.id ?? route.run }}
                  navigate={navigate}
                >
                  {text}
                </ViewLink>,
              ])}
            </p>
          ) : null}
          {finding.advice && isAdvice ? (
            <p>
              → <LinkedText text={finding.advice} links={[]} runs={runs} navigate={navigate} />
            </p>
          ) : null}
        </div>
        {finding.figure ? (
          <div class="picture" data-kind={finding.figure.kind}>
            <FigureView {...props} figure={finding.figure} />
          </div>
        ) : null}
      </div>
    </article>
  )
}

/** Claims that these runs do not decide: the value so far, and why that is not enough. */
function UndecidedClaims({ findings, navigate }: { findings: Finding[]; navigate: Navigate }) {
  if (!findings.length) return null
  return (
    <section>
      <h3>Not decided by these runs</h3>
      <div class="scroll-x">
        <table class="undecided">
          <thead>
            <tr>
              <th scope="col">claim</th>
              <th scope="col">so far</th>
              <th scope="col">why</th>
            </tr>
          </thead>
          <tbody>
            {findings.map((finding) => (
              <tr key={finding.code} data-code={finding.code} title={finding.evidence}>
                <td>
                  {finding.claim} <code>{finding.code}</code>
                </td>
                <td class="number">{formatSoFar(finding)}</td>
                <td>
                  <LinkedText
                    text={finding.missing || stripDate(finding.evidence)}
                    links={[]}
                    runs={[]}
                    navigate={navigate}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

/** The value without the number of seeds, which the next column has. */
function formatSoFar({ number, formatted, missing }: Finding): string {
  if (number.value === null) return "–"
  return missing ? formatted.replace(/, \d+ seeds?$/, "") : formatted
}

/** Warnings and notes that need data which these runs did not record. */
function NotExamined({ findings, navigate }: { findings: Finding[]; navigate: Navigate }) {
  if (!findings.length) return null
  const reasons = [...new Set(findings.map((finding) => finding.evidence))]
  return (
    <section>
      <h3>Not examined</h3>
      <ul class="muted">
        {reasons.map((reason) => (
          <li key={reason}>
            {findings
              .filter((finding) => finding.evidence === reason)
              .map((finding) => finding.code)
              .join(", ")}
            : <LinkedText text={stripDate(reason)} links={[]} runs={[]} navigate={navigate} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

export default {
  title: "Findings",
  order: 50,
  component: FindingsPane,
  digest: FindingsDigest,
  digestOrder: 15, // right after the experiments
  applies: ({ run, index }) =>
    index.kind === "board"
      ? run !== null && run.state !== "broken"
      : index.groups.some((group) => group.findings.length > 0),
} satisfies PaneDefinition
