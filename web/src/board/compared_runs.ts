// The runs to compare, as stored in the route: `with=ID,ID`, each ID percent-encoded.

import type { Route } from "../route"

export function parseComparedRuns(route: Route): string[] {
  return String(route.with ?? "")
    .split(",")
    .filter(Boolean)
    .map(decode)
}

export function formatRunIds(ids: string[]): string | undefined {
  return ids.map(encodeURIComponent).join(",") || undefined
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
