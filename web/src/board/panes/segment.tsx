// Segmentation of a pasted text: every sentence or line with the probability that a segment starts there.

import { useRef, useState } from "preact/hooks"

import { errorMessage, formatNumber, formatInteger } from "../../format"
import type { PaneDefinition, PaneProps } from "../../pane"
import type { FetchSource } from "../fetch_source"
import { streamLines, type SegmentedText, type SegmentRequest } from "../api"

const PRETRAINED = ""

function SegmentPane({ source, run, route, navigate }: PaneProps) {
  const board = source as FetchSource
  const [text, setText] = useState("")
  const [result, setResult] = useState<SegmentedText | null>(null)
  const [errorText, setErrorText] = useState("")
  const [isBusy, setBusy] = useState(false)
  const controller = useRef<AbortController | null>(null)
  const segmenters = [...board.entries.values()]
    .filter((entry) => entry.task === "segmentation" && entry.kind === "run")
    .reverse()
  const defaultSegmenter = segmenters.some((entry) => entry.id === run?.id) ? run!.id : PRETRAINED
  const segmenter =
    segmenters.some((entry) => entry.id === route.by) || route.by === "shipped"
      ? String(route.by).replace("shipped", PRETRAINED)
      : defaultSegmenter
  const [minElements, maxElements, threshold] = [
    route.min_elements,
    route.max_elements,
    route.threshold,
  ].map((field) => (field ? Number(field) : undefined))

  const segment = async (event?: Event) => {
    event?.preventDefault()
    controller.current?.abort()
    const ownController = new AbortController()
    controller.current = ownController
    setErrorText("")
    setBusy(true)
    try {
      const request: SegmentRequest = {
        text,
        min_elements: minElements,
        max_elements: maxElements,
        threshold,
        run: segmenter || undefined,
      }
      for await (const line of streamLines("api/segment", request, ownController.signal))
        setResult(line as unknown as SegmentedText)
    } catch (error) {
      if (!ownController.signal.aborted) setErrorText(errorMessage(error))
    } finally {
      if (controller.current === ownController) setBusy(false)
    }
  }

  return (
    <>
      <form class="toolbar" onSubmit={(event) => void segment(event)}>
        <textarea
          aria-label="text"
          rows={6}
          value={text}
          placeholder="paste a text here"
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) =>
            event.key === "Enter" && (event.ctrlKey || event.metaKey) && void segment(event)
          }
        />
        <label class="choice">
          <span class="muted">by </span>
          <select
            aria-label="network"
            value={segmenter}
            onChange={(event) => navigate({ by: event.currentTarget.value || "shipped" })}
          >
            <option value={PRETRAINED}>pretrained, shipped with neural</option>
            {segmenters.map((entry) => (
              <option key={entry.id} value={entry.id}>
                {entry.name}
              </option>
            ))}
          </select>
        </label>
        <label class="choice">
          <span class="muted">shortest segment </span>
          <input
            type="number"
            min={1}
            max={1000}
            value={minElements ?? ""}
            placeholder="default"
            onInput={(event) =>
              navigate({ min_elements: event.currentTarget.value || undefined }, { replace: true })
            }
          />
        </label>
        <label class="choice">
          <span class="muted">longest segment </span>
          <input
            type="number"
            min={1}
            max={1000}
            value={maxElements ?? ""}
            placeholder="any"
            onInput={(event) =>
              navigate({ max_elements: event.currentTarget.value || undefined }, { replace: true })
            }
          />
        </label>
        <label class="choice">
          <span class="muted">threshold </span>
          <input
            type="number"
            min={0.01}
            max={0.99}
            step={0.01}
            value={threshold ?? ""}
            placeholder={result ? formatNumber(result.threshold) : "default"}
            onInput={(event) =>
              navigate({ threshold: event.currentTarget.value || undefined }, { replace: true })
            }
          />
        </label>
        <button
          type="submit"
          class="action"
          disabled={!text.trim() || isBusy}
          title="Ctrl-Enter in the text"
        >
          {isBusy ? "…" : "segment"}
        </button>
      </form>
      {errorText ? <p class="note">{errorText}</p> : null}
      {result ? (
        <SegmentList result={result} />
      ) : (
        <p class="muted">The text stays on this machine and is not stored.</p>
      )}
    </>
  )
}

function SegmentList({ result }: { result: SegmentedText }) {
  return (
    <>
      {result.notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      <p class="muted">
        {formatInteger(result.segments.length)} segment{result.segments.length === 1 ? "" : "s"} of{" "}
        {formatInteger(result.elements.length)} {result.unit}, by {result.segmenter}. In the margin:
        the probability that a segment starts; above {formatNumber(result.threshold)} one does.
      </p>
      <div class="segmented-text">
        {result.segments.map((segment, index) => (
          <section key={index}>
            <h3>
              <span class="muted">{index + 1}</span> {segment.title}{" "}
              {segment.probability === null ? null : (
                <small class="muted">{segment.probability.toFixed(2)}</small>
              )}
            </h3>
            {result.elements.slice(segment.first, segment.last).map((element, row) => (
              <p key={row} class={element.is_boundary ? "boundary" : ""}>
                <i
                  class="probability-bar"
                  title={element.probability.toFixed(3)}
                  style={{ "--threshold": `${100 * result.threshold}%` }}
                >
                  <b style={{ width: `${100 * element.probability}%` }} />
                </i>
                <span class="probability">
                  {segment.first + row ? element.probability.toFixed(2) : ""}
                </span>
                <span>{element.text}</span>
              </p>
            ))}
          </section>
        ))}
      </div>
    </>
  )
}

export default {
  title: "Segment",
  order: 130,
  applies: () => true,
  component: SegmentPane,
} satisfies PaneDefinition
