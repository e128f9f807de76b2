// Main findings in the digest: those that are decided, warnings first, with their pictures.

import { FigureView } from "../components/figure_view"
import { Verdict } from "../components/verdict"
import type { PaneProps } from "../pane"
import type { Finding, Group } from "../run_data"

const MAX_PICTURES = 6
const MAX_FINDINGS = 12
const MAX_PER_GROUP = 4

export function FindingsDigest(props: PaneProps) {
  const selected = selectFindings(props.groups)
  if (!selected.length) return null
  const pictured = new Set(
    selected
      .filter(({ finding }) => finding.figure)
      .slice(0, MAX_PICTURES)
      .map(toFinding),
  )
  return (
    <>
      <h2>Main findings</h2>
      <div class="digest-columns">
        {selected.map(({ finding, group }) => (
          <div key={`${group.label} ${finding.code}`} class="digest-block digest-finding">
            <p class="muted">{group.label}</p>
            <p>
              <Verdict finding={finding} /> <b>{finding.claim}</b>
            </p>
            <p>{finding.formatted}</p>
            {finding.figure && pictured.has(finding) ? (
              <FigureView
                {...props}
                runs={props.runs.filter((run) => group.runs.includes(run.id))}
                figure={finding.figure}
                isCard
              />
            ) : null}
          </div>
        ))}
      </div>
    </>
  )
}

interface GroupFinding {
  group: Group
  finding: Finding
}

function toFinding({ finding }: GroupFinding): Finding {
  return finding
}

/** The first findings of every group in turn: warnings, then claims, then notes; each with a picture first. */
function selectFindings(groups: Group[]): GroupFinding[] {
  const ranked = groups.map((group) =>
    group.findings
      .filter((finding) => finding.supported !== "undecided")
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, MAX_PER_GROUP)
      .map((finding) => ({ group, finding })),
  )
  const inTurn = Array.from({ length: MAX_PER_GROUP }, (_, place) =>
    ranked.flatMap((findings) => findings.slice(place, place + 1)),
  ).flat()
  const chosen = new Set(inTurn.slice(0, MAX_FINDINGS))
  return ranked.flat().filter((entry) => chosen.has(entry))
}

function rank(finding: Finding): number {
  const kind = finding.kind === "warning" ? 0 : finding.kind === "claim" ? 2 : 4
  return kind + (finding.figure ? 0 : 1)
}
