// Tokens as buttons, shaded by the weights of one query (or key). The active token is a tab stop; arrow
// keys move to its neighbours. Pointing at a token or focusing it shows its row at once; a click keeps it.

import { useRef } from "preact/hooks"

import { shadeCell, shadeSigned } from "../draw/colours"
import { scaleWeight, type WeightScaleName } from "../draw/weight_scale"
import { formatWeight } from "../format"
import type { Theme } from "../theme"

interface Props {
  label: string
  names: string[]
  /** Weight of each token; null: masked. No shading without weights. */
  weights?: (number | null)[]
  padded: boolean[]
  signed?: boolean
  /** Largest |weight|. */
  scale?: number
  colours: WeightScaleName
  theme: Theme
  /** The token whose row is shown; −1: none of these. */
  active: number
  /** Show the row of a token while it is pointed at or focused; null: the selected one again. */
  onPreview?: (token: number | null) => void
  onSelect?: (token: number) => void
}

export function TokenStrip(props: Props) {
  const { label, names, weights, padded, signed, scale = 1, colours, theme, active } = props
  const container = useRef<HTMLDivElement>(null)
  const tabStop = active >= 0 && active < names.length ? active : 0
  const moveFocus = (event: KeyboardEvent) => {
    const offset = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key]
    const index = [...container.current!.children].indexOf(event.target as Element)
    const next = { Home: 0, End: names.length - 1 }[event.key] ?? index + (offset ?? 0)
    if (index < 0 || (offset === undefined && next === index)) return
    event.preventDefault()
    event.stopPropagation() // the page's own arrow keys move the step
    const button = container.current!.children[Math.min(names.length - 1, Math.max(0, next))]
    if (button instanceof HTMLElement) button.focus()
  }
  return (
    <div
      ref={container}
      class={names.some((name) => name.length > 1) ? "token-strip spaced" : "token-strip"}
      role="group"
      aria-label={label}
      onKeyDown={moveFocus}
      onMouseLeave={() => props.onPreview?.(null)}
    >
      {names.map((name, token) => {
        const weight = weights?.[token]
        const share = weight ? scaleWeight(weight / scale, colours) : 0
        const isShaded = weight !== undefined && weight !== null && !padded[token]
        const description = !weights
          ? `${name} (${token})`
          : `${name} (${token}): ${weight === null ? "masked" : formatWeight(weight ?? 0)}`
        return (
          <button
            type="button"
            key={token}
            class={joinClasses(
              weight === null && "masked",
              token === active && "current",
              padded[token] && "padding",
            )}
            style={isShaded ? (signed ? shadeSigned : shadeCell)(share, theme) : {}}
            title={description}
            aria-label={description}
            aria-pressed={token === active}
            tabIndex={token === tabStop ? 0 : -1}
            data-token={token}
            onMouseEnter={() => props.onPreview?.(token)}
            onFocus={() => props.onPreview?.(token)}
            onBlur={() => props.onPreview?.(null)}
            onClick={() => props.onSelect?.(token)}
          >
            {name}
          </button>
        )
      })}
    </div>
  )
}

export function joinClasses(...names: (string | false | undefined | null)[]): string {
  return names.filter(Boolean).join(" ")
}
