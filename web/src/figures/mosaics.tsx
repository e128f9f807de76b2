// The example on which paradigms differ most, with the focus of each at the end of training.

import { Mosaic, type MosaicRow } from "../components/mosaic"
import type { FigureDefinition, FigureProps } from "../figure"
import type { ImageShape, MosaicExample } from "../focus_data"

/** `figure.example` with `image_shape`, `classes`, `noun`; `figure.rows`: a label, weights and prediction each. */
function Mosaics({ figure }: FigureProps) {
  const example = figure.example as MosaicExample
  const classes = figure.classes as string[]
  const noun = String(figure.noun)
  const label = classes[example.label] ?? example.label
  return (
    <figure class="mosaic-figure">
      <Mosaic
        example={example}
        imageShape={figure.image_shape as ImageShape | null}
        classes={classes}
        noun={noun}
        rows={figure.rows as MosaicRow[]}
      />
      <figcaption class="muted">
        The brighter, the more focus.{" "}
        {example.foreground.length ? `The framed ${noun} decides the class: ${label}.` : ""}
      </figcaption>
    </figure>
  )
}

export default { component: Mosaics } satisfies FigureDefinition
