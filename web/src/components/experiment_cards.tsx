// The first view: one card per experiment with its result in one sentence, a picture and a link.

import { formatName } from "../format"
import type { PaneProps } from "../pane"
import type { Experiment } from "../run_data"
import { FigureView } from "./figure_view"
import "../styles/experiment_cards.css"

/** Cards beyond this number are folded. */
const MAX_OPEN_CARDS = 6

type CardProps = Pick<PaneProps, "index" | "runs" | "source" | "navigate" | "route" | "theme">

/** A card for each experiment of the page. */
export function ExperimentCards(props: CardProps) {
  const experiments = props.index.experiments ?? []
  const [open, folded] = [experiments.slice(0, MAX_OPEN_CARDS), experiments.slice(MAX_OPEN_CARDS)]
  return (
    <>
      <Cards {...props} experiments={open} />
      {folded.length ? (
        <details>
          <summary>{folded.length} more experiments</summary>
          <Cards {...props} experiments={folded} />
        </details>
      ) : null}
    </>
  )
}

function Cards({ experiments, ...props }: CardProps & { experiments: Experiment[] }) {
  return (
    <div class={`experiment-cards${experiments.length === 1 ? " single" : ""}`}>
      {experiments.map((experiment) => (
        <ExperimentCard
          key={`${experiment.task} ${experiment.data}`}
          {...props}
          experiment={experiment}
        />
      ))}
    </div>
  )
}

function ExperimentCard({
  experiment,
  runs,
  source,
  navigate,
  route,
  theme,
}: CardProps & { experiment: Experiment }) {
  const { title, task, data, headline, details, figures, link } = experiment
  const kind = [title === task ? "" : formatName(task), data && data !== title ? `on ${data}` : ""]
  const ownRuns = runs.filter((run) => experiment.runs.includes(run.id))
  return (
    <article class="experiment-card card">
      <p class="experiment-title">
        <b>{formatName(title)}</b> <span class="muted">{kind.filter(Boolean).join(" ")}</span>
      </p>
      <h2 class="headline">{headline}</h2>
      {figures.length ? (
        <div class="card-figures">
          {figures.map((figure, position) => (
            <FigureView
              key={position}
              figure={figure}
              runs={ownRuns}
              source={source}
              navigate={navigate}
              route={route}
              theme={theme}
              isCard
            />
          ))}
        </div>
      ) : null}
      {details.length ? (
        <ul class="details">
          {details.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      ) : null}
      {link ? (
        <p class="more">
          <button type="button" class="link" onClick={() => navigate(link.route)}>
            {link.text} →
          </button>
        </p>
      ) : null}
    </article>
  )
}
