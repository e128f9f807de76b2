// Strip of a held-out document: probabilities, true and predicted boundaries, and some of its texts.

import type { FigureDefinition, FigureProps } from "../figure"
import { classifyCuts, type Cut } from "../segmentation_scores"
import "../styles/text_strip.css"

interface TextStripData {
  name: string
  /** Index of the first element whose text is shown. */
  first: number
  texts: string[]
  /** P(a segment begins) of every element of the document. */
  probabilities: number[]
  boundaries: number[]
  predicted: number[]
  threshold: number
}

function TextStrip({ figure }: FigureProps) {
  const data = figure as unknown as TextStripData
  const cuts = classifyCuts(data.boundaries, data.predicted)
  const hits = [...cuts.values()].filter((cut) => cut.kind === "hit").length
  return (
    <figure
      class="text-strip"
      aria-label={`held-out document ${data.name}: ${hits} of ${data.boundaries.length} boundaries found, ${data.predicted.length} predicted`}
    >
      <Overview data={data} />
      <ol>
        {data.texts.map((text, offset) => {
          const element = data.first + offset
          const probability = data.probabilities[element]
          return (
            <li key={element} class={styleCut(cuts.get(element))}>
              <span class="probability-cell" aria-hidden="true">
                <i style={{ width: `${probability * 100}%` }} />
              </span>
              <span class="number">{element ? probability.toFixed(2).replace(/^0/, "") : ""}</span>
              <span class="text" title={text}>
                {text}
              </span>
              <span class="mark">{cuts.get(element)?.kind ?? ""}</span>
            </li>
          )
        })}
      </ol>
    </figure>
  )
}

/** Class of an element: how good the boundary before it is, and whether it is a true one. */
function styleCut(cut: Cut | undefined): string {
  if (!cut) return ""
  return `${cut.kind.replace(" ", "-")} ${cut.isTrue ? "is-true" : "is-predicted"}`
}

/** The whole document: true segments, probabilities with the threshold, predicted segments. */
function Overview({ data }: { data: TextStripData }) {
  const count = data.probabilities.length
  return (
    <div class="overview">
      <span>true</span>
      <Segments boundaries={data.boundaries} count={count} />
      <span title="P(a segment begins) before each element; the line is the threshold">
        probability
      </span>
      <svg viewBox={`0 0 ${count} 1`} preserveAspectRatio="none" aria-hidden="true">
        {data.probabilities.map((probability, element) => (
          <rect
            key={element}
            class={probability > data.threshold ? "above" : ""}
            x={element + 0.15}
            y={1 - probability}
            width={0.7}
            height={probability}
          />
        ))}
        <line x1={0} x2={count} y1={1 - data.threshold} y2={1 - data.threshold} />
        <rect class="excerpt" x={data.first} y={0} width={data.texts.length} height={1} />
      </svg>
      <span>predicted</span>
      <Segments boundaries={data.predicted} count={count} />
    </div>
  )
}

/** Segments as blocks beside each other. */
function Segments({ boundaries, count }: { boundaries: number[]; count: number }) {
  const edges = [0, ...boundaries, count]
  return (
    <div class="segment-blocks">
      {edges.slice(1).map((end, index) => (
        <i key={end} style={{ width: `${((end - edges[index]) / count) * 100}%` }} />
      ))}
    </div>
  )
}

export default { component: TextStrip } satisfies FigureDefinition
