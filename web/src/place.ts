// The address of a view: `#/attention?run=…&step=500&layer=2&head=3`. What is shown follows from it alone.

export interface Place {
  pane: string
  run?: string
  step?: number
  layer?: number
  head?: number
  query?: number
  [other: string]: string | number | undefined
}

export type Go = (changes: Partial<Place>, how?: { quietly?: boolean }) => void

const NUMBERS = new Set(["step", "layer", "head", "query"])

export function parsePlace(hash: string): Place {
  const [pane, asked] = hash.replace(/^#?\/?/, "").split("?")
  const place: Place = { pane: decoded(pane) }
  for (const [key, value] of new URLSearchParams(asked ?? "")) {
    if (key === "pane") continue
    if (!NUMBERS.has(key)) place[key] = value
    else if (/^\d+$/.test(value)) place[key] = Number(value)
  }
  return place
}

export function hashOf({ pane, ...rest }: Place): string {
  const asked = new URLSearchParams()
  for (const [key, value] of Object.entries(rest)) if (value !== undefined && value !== "") asked.set(key, String(value))
  return `#/${encodeURIComponent(pane)}${[...asked].length ? `?${asked}` : ""}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ""
  }
}

/** Write the address. A notebook's frame has none of its own: there it stays in memory. */
export function writePlace(place: Place, quietly: boolean): void {
  const hash = hashOf(place)
  if (location.hash === hash || location.protocol === "about:") return
  if (quietly) history.replaceState(null, "", hash)
  else history.pushState(null, "", hash)
}
