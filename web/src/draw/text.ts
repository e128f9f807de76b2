// Width of text in pixels, and labels shortened to a width. Characters differ in width (CJK, emoji),
// so counting them is not enough.

/** The font of labels beside maps; `.tick` in the style sheet has the same. */
export const TICK_FONT = "10px ui-monospace, monospace"
const ELLIPSIS = "…"

let context: CanvasRenderingContext2D | null = null
const widths = new Map<string, number>()
const MAX_CACHED_WIDTHS = 20_000

export function measureText(text: string, font = TICK_FONT): number {
  const key = `${font}\n${text}`
  let width = widths.get(key)
  if (width === undefined) {
    context ??= document.createElement("canvas").getContext("2d")!
    if (context.font !== font) context.font = font
    width = context.measureText(text).width
    if (widths.size > MAX_CACHED_WIDTHS) widths.clear()
    widths.set(key, width)
  }
  return width
}

/** The text itself, or its beginning with an ellipsis, in at most `maxWidth` pixels. */
export function shortenText(
  text: string,
  maxWidth: number,
  measure: (text: string) => number = measureText,
): string {
  // far more characters than fit are not worth measuring
  const characters = [...text.slice(0, 400)]
  if (characters.length === [...text].length && measure(text) <= maxWidth) return text
  let low = 0
  let high = characters.length
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (measure(characters.slice(0, middle).join("") + ELLIPSIS) <= maxWidth) low = middle
    else high = middle - 1
  }
  return characters.slice(0, low).join("") + ELLIPSIS
}

export function widestText(texts: string[], measure: (text: string) => number = measureText) {
  return texts.reduce((widest, text) => Math.max(widest, measure(text)), 0)
}
