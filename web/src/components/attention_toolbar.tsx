// Controls of the attention view: what is drawn of the selected head. Everything is in the address.

import {
  formatHeads,
  VIEW_NAMES,
  type AttentionOptions,
  type AttentionView,
} from "../attention_options"
import { DEFAULT_WEIGHT_SCALE, WEIGHT_SCALES } from "../draw/weight_scale"
import { formatHead, formatInteger } from "../format"
import type { Navigate } from "../route"

interface Props {
  options: AttentionOptions
  views: AttentionView[]
  layer: number
  head: number
  /** Heads of the layer, and of all layers. */
  layerHeads: number
  allHeads: number
  /** Steps with maps, ascending. */
  steps: number[]
  navigate: Navigate
}

export function AttentionToolbar(props: Props) {
  const { options, views, layer, head, layerHeads, allHeads, steps, navigate } = props
  const headChoices: [value: string, text: string][] = [["head", formatHead(layer, head)]]
  const addScope = (scope: "layer" | "all", name: string) => {
    headChoices.push(
      [`${scope}-mean`, `mean of ${name}`],
      [`${scope}-maximum`, `maximum of ${name}`],
    )
    if (options.view === "lines")
      headChoices.push([
        `${scope}-each`,
        `${name}, a colour ${scope === "all" ? "per layer" : "each"}`,
      ])
  }
  if (layerHeads > 1) addScope("layer", `${layerHeads} heads of ${formatHead(layer)}`)
  if (allHeads > layerHeads) addScope("all", `all ${allHeads} heads`)
  return (
    <div class="toolbar attention-toolbar">
      <div class="segments" role="group" aria-label="view">
        {views.map((view) => (
          <button
            type="button"
            key={view}
            class={view === options.view ? "selected" : ""}
            aria-pressed={view === options.view}
            onClick={() => navigate({ view: view === "map" ? undefined : view })}
          >
            {VIEW_NAMES[view]}
          </button>
        ))}
      </div>
      {options.view === "products" ? null : (
        <>
          {headChoices.length > 1 ? (
            <Choice
              label="heads"
              value={formatHeads(options.scope, options.combination) ?? "head"}
              choices={headChoices}
              onChange={(value) => navigate({ heads: value === "head" ? undefined : value })}
            />
          ) : null}
          {options.view === "lines" ? null : (
            <Choice
              label="rows"
              value={options.direction}
              choices={[
                ["queries", "queries → keys"],
                ["keys", "keys → queries"],
              ]}
              onChange={(value) =>
                navigate({ direction: value === "keys" ? value : undefined, query: undefined })
              }
            />
          )}
          {steps.length > 1 ? (
            <Choice
              label="minus"
              value={options.minus === null ? "" : String(options.minus)}
              choices={[
                ["", "nothing"],
                ...steps.map((step, index): [string, string] => [
                  String(step),
                  `${index ? "" : "the start, "}step ${formatInteger(step)}`,
                ]),
              ]}
              onChange={(value) => navigate({ minus: value || undefined })}
            />
          ) : null}
          {options.view === "list" ? null : (
            <Choice
              label={options.view === "lines" ? "strength" : "colours"}
              value={options.colours}
              choices={WEIGHT_SCALES.map((name) => [name, name])}
              onChange={(value) =>
                navigate({ colours: value === DEFAULT_WEIGHT_SCALE ? undefined : value })
              }
            />
          )}
        </>
      )}
    </div>
  )
}

export function Choice({
  label,
  value,
  choices,
  onChange,
}: {
  label: string
  value: string
  choices: [value: string, text: string][]
  onChange: (value: string) => void
}) {
  return (
    <label class="choice">
      <span class="muted">{label} </span>
      <select
        aria-label={label}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {choices.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
