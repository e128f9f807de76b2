// Text of a finding: names of heads, such as "L2 h2", are links to these heads; `code` is code.

import type { Navigate, Route } from "../route"
import type { FindingLink, Run } from "../run_data"
import { ViewLink } from "./view_link"

const HEAD_OR_CODE = /L(\d+) h(\d+)|`([^`]+)`/g

interface Props {
  text: string
  /** Links of the finding: they know the step at which to look. */
  links: FindingLink[]
  /** The runs that the text is about; it quotes each by its seed or name if there are several. */
  runs: Run[]
  navigate: Navigate
}

export function LinkedText({ text, links, runs, navigate }: Props) {
  const parts = []
  let end = 0
  for (const match of text.matchAll(HEAD_OR_CODE)) {
    const part = match[3] ? (
      <code key={match.index}>{match[3]}</code>
    ) : (
      linkHead(text.slice(0, match.index), match, { text, links, runs, navigate })
    )
    if (!part) continue
    parts.push(text.slice(end, match.index), part)
    end = match.index + match[0].length
  }
  parts.push(text.slice(end))
  return <>{parts}</>
}

/** A link to a head; null if the run has no maps of it. */
function linkHead(before: string, match: RegExpMatchArray, { links, runs, navigate }: Props) {
  const [name, layer, head] = match
  const run = findQuotedRun(before, runs)
  if (!run?.map_steps.length) return null
  const link = links.find(({ text, route }) => text === name && findRun(route.run, runs) === run)
  const route: Partial<Route> = {
    pane: "attention",
    step: run.map_steps[run.map_steps.length - 1],
    ...link?.route,
    run: run.id,
    layer: Number(layer),
    head: Number(head),
  }
  return (
    <ViewLink key={match.index} route={route} navigate={navigate}>
      {name}
    </ViewLink>
  )
}

/** The run whose seed or name stands last before a position in the text; the first run without any. */
function findQuotedRun(before: string, runs: Run[]): Run | undefined {
  const quoted = runs
    .map((run) => ({
      run,
      position: Math.max(
        before.lastIndexOf(`seed ${run.seed}: `),
        before.lastIndexOf(`${run.name}: `),
      ),
    }))
    .filter(({ position }) => position >= 0)
    .sort((first, second) => second.position - first.position)
  return quoted[0]?.run ?? runs[0]
}

/** The run of an id in a figure or link. A page of one run may know it by another id. */
export function findRun(id: unknown, runs: Run[]): Run | undefined {
  return runs.find((run) => run.id === id) ?? (runs.length === 1 ? runs[0] : undefined)
}
