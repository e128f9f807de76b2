// Route: the page's state as stored in the URL's hash, `#/attention?run=…&step=500&layer=2&head=3`.

export interface Route {
  pane: string
  run?: string
  step?: number
  layer?: number
  head?: number
  query?: number
  [other: string]: string | number | undefined
}

export type Navigate = (changes: Partial<Route>, options?: { replace?: boolean }) => void

const NUMERIC_KEYS = new Set(["step", "layer", "head", "query"])

export function parseRoute(hash: string): Route {
  const [pane, search] = hash.replace(/^#?\/?/, "").split("?")
  const route: Route = { pane: decode(pane) }
  for (const [key, value] of new URLSearchParams(search ?? "")) {
    if (key === "pane") continue
    if (!NUMERIC_KEYS.has(key)) route[key] = value
    else if (/^\d+$/.test(value)) route[key] = Number(value)
  }
  return route
}

export function formatRoute({ pane, ...rest }: Route): string {
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(rest))
    if (value !== undefined && value !== "") search.set(key, String(value))
  return `#/${encodeURIComponent(pane)}${[...search].length ? `?${search}` : ""}`
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ""
  }
}

/** Write the hash. A notebook's frame (about:srcdoc) has no URL of its own: there it stays in memory. */
export function writeRoute(route: Route, replace: boolean): void {
  const hash = formatRoute(route)
  if (location.hash === hash || location.protocol === "about:") return
  if (replace) history.replaceState(null, "", hash)
  else history.pushState(null, "", hash)
}
