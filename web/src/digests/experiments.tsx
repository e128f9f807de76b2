// Experiments in the digest: the result of each in a sentence, with its pictures.

import { FigureView } from "../components/figure_view"
import { formatCount } from "../format"
import type { PaneProps } from "../pane"

const MAX_EXPERIMENTS = 6
const MAX_LISTED = 20
const MAX_DETAILS = 2
const MAX_FIGURES = 2

export function ExperimentsDigest(props: PaneProps) {
  const experiments = props.index.experiments ?? []
  if (!experiments.length) return null
  const listed = experiments.slice(MAX_EXPERIMENTS, MAX_EXPERIMENTS + MAX_LISTED)
  const left = experiments.length - MAX_EXPERIMENTS - listed.length
  return (
    <>
      {experiments.slice(0, MAX_EXPERIMENTS).map((experiment) => (
        <section key={experiment.title} class="digest-block card">
          <p class="muted">
            {experiment.title} · {formatCount(experiment.runs.length, "run")}
          </p>
          <h2>{experiment.headline}</h2>
          {experiment.details.slice(0, MAX_DETAILS).map((text) => (
            <p key={text}>{text}</p>
          ))}
          <div class="digest-figures">
            {experiment.figures.slice(0, MAX_FIGURES).map((figure, position) => (
              <FigureView
                key={position}
                {...props}
                runs={props.runs.filter((run) => experiment.runs.includes(run.id))}
                figure={figure}
                isCard
              />
            ))}
          </div>
        </section>
      ))}
      {listed.length ? (
        <ul>
          {listed.map((experiment) => (
            <li key={experiment.title}>
              {experiment.title}: {experiment.headline}
            </li>
          ))}
        </ul>
      ) : null}
      {left > 0 ? <p class="muted">and {formatCount(left, "more experiment")}</p> : null}
    </>
  )
}
