// Held-out documents of a segmentation run: true and predicted boundaries at any threshold.

import { useMemo } from "preact/hooks"

import { ThresholdCurve } from "../components/threshold_curve"
import { Picture } from "../export"
import { formatCount, formatInteger } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import type { Navigate } from "../route"
import type { Run, SegmentationData, ShownDocument } from "../run_data"
import {
  classifyCuts,
  findBoundaries,
  scoreDocuments,
  splitDocuments,
  type BoundaryScores,
  type Cut,
  type ScoredDocument,
} from "../segmentation_scores"
import "../styles/segmentation.css"

const [MIN_THRESHOLD, MAX_THRESHOLD, THRESHOLD_STEP] = [0.001, 0.999, 0.001]

const SCORES: [key: keyof BoundaryScores, name: string, meaning: string][] = [
  ["precision", "precision", "share of the predicted boundaries that are true; 1 is best"],
  ["recall", "recall", "share of the true boundaries that are predicted; 1 is best"],
  ["f1", "F1", "harmonic mean of precision and recall of all boundaries together; 1 is best"],
  ["f1Within1", "F1 ±1", "F1 if a boundary may be off by one element; 1 is best"],
  ["f1Within2", "F1 ±2", "F1 if a boundary may be off by up to two elements; 1 is best"],
  [
    "pk",
    "Pk ↓",
    "share of the pairs of elements, half a mean segment apart, on which prediction and truth disagree whether they are in one segment; mean over documents; 0 is best",
  ],
  [
    "windowDiff",
    "WindowDiff ↓",
    "share of the windows, half a mean segment long, with a wrong number of boundaries; mean over documents; 0 is best",
  ],
]

function SegmentationPane({ run, runs, route, navigate }: PaneProps) {
  const data = useMemo(() => findDocuments(run, runs), [run, runs])
  return data ? <HeldOutDocuments data={data} route={route} navigate={navigate} /> : null
}

/** The documents of a run with its predictions; runs with the same documents share them. */
function findDocuments(run: Run | null, runs: Run[]): SegmentationData | null {
  const data = run?.segmentation
  if (!data || !("documents_of" in data)) return data ?? null
  const shared = runs.find(({ id }) => id === data.documents_of)?.segmentation
  return shared && !("documents_of" in shared) ? { ...shared, ...data } : null
}

/** The number of the selected probabilities: the calibrated ones, unless the address says otherwise. */
function selectPrediction(data: SegmentationData, choice: unknown): number {
  const named = data.predictions.findIndex(
    (prediction) => nameProbabilities(prediction.method) === choice,
  )
  return named >= 0 ? named : data.predictions.length - 1
}

function nameProbabilities(method: string): string {
  return method === "none" ? "uncalibrated" : "calibrated"
}

function HeldOutDocuments({
  data,
  route,
  navigate,
}: {
  data: SegmentationData
  route: PaneProps["route"]
  navigate: Navigate
}) {
  const selected = selectPrediction(data, route.probabilities)
  const stored = data.predictions[selected].threshold
  const documents = useMemo(() => splitDocuments(data, selected), [data, selected])
  const requested = Number(route.threshold)
  const threshold = requested > 0 && requested < 1 ? requested : stored
  const number = Math.min(data.shown.length, Math.max(1, Number(route.document) || 1))
  const shown = data.shown[number - 1]
  const scores = useMemo(() => scoreDocuments(documents, threshold), [documents, threshold])
  const storedScores = useMemo(() => scoreDocuments(documents, stored), [documents, stored])
  const showDocument = (next: number) => navigate({ document: next }, { replace: true })
  return (
    <div class="segmentation-layout">
      <aside>
        <section class="card threshold-card">
          <h2>Threshold</h2>
          <ThresholdSlider threshold={threshold} stored={stored} navigate={navigate} />
          {data.predictions.length > 1 ? (
            <fieldset class="probability-choice">
              <legend class="muted">probabilities</legend>
              {data.predictions.map(({ method }, index) => (
                <label key={method} class="choice">
                  <input
                    type="radio"
                    name="probabilities"
                    checked={index === selected}
                    onChange={() =>
                      navigate(
                        { probabilities: nameProbabilities(method), threshold: undefined },
                        { replace: true },
                      )
                    }
                  />{" "}
                  {nameProbabilities(method)}
                  {method === "none" ? "" : ` (${method})`}
                </label>
              ))}
            </fieldset>
          ) : null}
          <p class="live-scores" aria-live="polite">
            {SCORES.slice(0, 3).map(([key, name, meaning]) => (
              <span key={key} title={meaning}>
                {name} <b>{formatScore(scores[key])}</b>
              </span>
            ))}
          </p>
          <p class="muted counts">
            {describeCounts(scores)}; {describeSet(data)}
          </p>
        </section>
        <section class="card scores-card">
          <ScoreTable
            columns={[
              ...(shown
                ? [
                    [
                      "this document",
                      scoreDocuments([documents[shown.document]], threshold),
                    ] as Column,
                  ]
                : []),
              ["all documents", scores],
              ["at the stored threshold", storedScores],
            ]}
          />
          <Picture name="threshold">
            <ThresholdCurve documents={documents} threshold={threshold} stored={stored} />
          </Picture>
        </section>
      </aside>
      {shown ? (
        <section class="card document-card">
          <div class="document-bar">
            <h2>
              Held-out document {number} of {data.shown.length}{" "}
              <small>
                {shown.name}; predictions of step {formatInteger(data.step)}
              </small>
            </h2>
            <span class="toolbar">
              <button
                type="button"
                aria-label="previous document"
                disabled={number === 1}
                onClick={() => showDocument(number - 1)}
              >
                ‹
              </button>
              <select
                aria-label="document"
                value={number}
                onChange={(event) => showDocument(Number(event.currentTarget.value))}
              >
                {data.shown.map((entry, index) => (
                  <option key={entry.document} value={index + 1}>
                    {entry.name}
                  </option>
                ))}
              </select>
              <button
                type="button"
                aria-label="next document"
                disabled={number === data.shown.length}
                onClick={() => showDocument(number + 1)}
              >
                ›
              </button>
            </span>
          </div>
          <Legend />
          <DocumentView
            shown={shown}
            labels={data.labels}
            predictedLabels={data.predicted_labels[number - 1]}
            document={documents[shown.document]}
            threshold={threshold}
          />
        </section>
      ) : null}
    </div>
  )
}

function ThresholdSlider({
  threshold,
  stored,
  navigate,
}: {
  threshold: number
  stored: number
  navigate: Navigate
}) {
  const setThreshold = (value: number) =>
    navigate({ threshold: value.toFixed(3) }, { replace: true })
  const share = (stored - MIN_THRESHOLD) / (MAX_THRESHOLD - MIN_THRESHOLD)
  return (
    <div class="threshold-slider">
      <div class="threshold-track">
        <input
          type="range"
          aria-label="threshold"
          min={MIN_THRESHOLD}
          max={MAX_THRESHOLD}
          step={THRESHOLD_STEP}
          value={threshold}
          onInput={(event) => setThreshold(Number(event.currentTarget.value))}
        />
        <span class="stored-mark" style={{ "--share": String(share) }} aria-hidden="true" />
      </div>
      <output aria-label="threshold">{threshold.toFixed(3)}</output>
      <button
        type="button"
        disabled={threshold === stored}
        title="back to the threshold that is stored with the run"
        onClick={() => navigate({ threshold: undefined }, { replace: true })}
      >
        reset
      </button>
      <span class="muted stored-text">▲ stored: {stored.toFixed(3)}</span>
    </div>
  )
}

type Column = [title: string, scores: BoundaryScores]

function ScoreTable({ columns }: { columns: Column[] }) {
  return (
    <table class="segmentation-scores">
      <thead>
        <tr>
          <th />
          {columns.map(([title]) => (
            <th key={title} class="right">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {SCORES.map(([key, name, meaning]) => (
          <tr key={key}>
            <td title={meaning}>
              <abbr title={meaning}>{name}</abbr>
            </td>
            {columns.map(([title, scores]) => (
              <td key={title} class="right" data-score={`${title}: ${key}`}>
                {formatScore(scores[key])}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function formatScore(value: number): string {
  return Number.isFinite(value) ? value.toFixed(3) : "–"
}

function describeCounts({ hits, predictedCount, trueCount }: BoundaryScores): string {
  return `${formatInteger(hits)} of ${formatCount(trueCount, "true boundary").replace(/boundarys$/, "boundaries")} found with ${formatInteger(predictedCount)} predicted`
}

function describeSet(data: SegmentationData): string {
  const recorded = data.lengths.length
  return recorded < data.documents
    ? `scores of ${formatInteger(recorded)} of ${formatInteger(data.documents)} validation documents`
    : `scores of all ${formatCount(recorded, "validation document")}`
}

function Legend() {
  return (
    <ul class="cut-legend">
      <li>
        <i class="cut-line true" /> true
      </li>
      <li>
        <i class="cut-line predicted" /> predicted
      </li>
      <li class="hit">hit</li>
      <li class="near-miss">near miss (1–2 elements off)</li>
      <li class="missed">missed or false alarm</li>
    </ul>
  )
}

function DocumentView({
  shown,
  labels,
  predictedLabels,
  document,
  threshold,
}: {
  shown: ShownDocument
  labels: string[]
  predictedLabels: number[] | undefined
  document: ScoredDocument
  threshold: number
}) {
  const cuts = classifyCuts(document.truth, findBoundaries(document.probabilities, threshold))
  const hidden = document.length - shown.texts.length
  return (
    <>
      <ol class="elements">
        {shown.texts.map((text, element) => (
          <Element
            key={element}
            element={element}
            text={text}
            probability={document.probabilities[element]}
            threshold={threshold}
            cut={cuts.get(element)}
            label={shown.labels ? labels[shown.labels[element]] : undefined}
            predictedLabel={predictedLabels ? labels[predictedLabels[element]] : undefined}
          />
        ))}
      </ol>
      {hidden > 0 ? (
        <p class="muted">
          {formatCount(hidden, "further element")} of this document: scored, but their texts are not
          recorded
        </p>
      ) : null}
    </>
  )
}

interface ElementProps {
  element: number
  text: string
  probability: number
  threshold: number
  cut: Cut | undefined
  label: string | undefined
  predictedLabel: string | undefined
}

function Element({
  element,
  text,
  probability,
  threshold,
  cut,
  label,
  predictedLabel,
}: ElementProps) {
  return (
    <li data-element={element} data-cut={cut?.kind}>
      {cut ? (
        <div class={`cut ${cut.kind.replace(" ", "-")}`}>
          {cut.isTrue ? <i class="cut-line true" /> : null}
          {cut.isPredicted ? <i class="cut-line predicted" /> : null}
          <span>{describeCut(cut)}</span>
        </div>
      ) : null}
      <div class="element">
        {element === 0 ? (
          <span class="probability" />
        ) : (
          <span
            class={`probability ${probability > threshold ? "above" : ""}`}
            title={`P(a segment begins) ${probability.toFixed(4)}`}
          >
            <span class="probability-bar">
              <i style={{ width: `${probability * 100}%` }} />
              <b style={{ left: `${threshold * 100}%` }} />
            </span>
            <span>{probability.toFixed(2).replace(/^0/, "")}</span>
          </span>
        )}
        {label !== undefined ? (
          <span class="element-label">
            {label}
            {predictedLabel !== undefined && predictedLabel !== label ? (
              <em title="predicted label"> → {predictedLabel}</em>
            ) : null}
          </span>
        ) : null}
        <span class="element-text">{text}</span>
      </div>
    </li>
  )
}

function describeCut({ kind, isTrue, offset }: Cut): string {
  if (kind === "hit") return "hit"
  if (kind === "missed") return "missed"
  if (kind === "false alarm") return "false alarm"
  const distance = `${Math.abs(offset)} ${offset > 0 ? "late" : "early"}`
  return isTrue ? `near miss: predicted ${distance}` : `near miss: ${distance}`
}

export default {
  title: "Segmentation",
  order: 55,
  component: SegmentationPane,
  applies: ({ run }) => Boolean(run?.segmentation),
  missing:
    "held-out documents: segmenters record them in training, if they have validation documents",
} satisfies PaneDefinition
