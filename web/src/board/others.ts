// Which other runs are looked at, as they stand in the address: `with=ID,ID`, each ID escaped.

import type { Place } from "../place"

export function others(place: Place): string[] {
  return String(place.with ?? "").split(",").filter(Boolean).map(decoded)
}

export function joined(ids: string[]): string | undefined {
  return ids.map(encodeURIComponent).join(",") || undefined
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
