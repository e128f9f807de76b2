// Requests to the board's server and the types of its responses. The keys are those of the JSON.

import type { RunSummary, Finding } from "../run_data"

/** A run in the list of all runs. */
export interface RunListEntry extends Omit<RunSummary, "best"> {
  kind: "run" | "broken"
  sweep: string | null
  task?: string
  seed?: number | null
  loss?: number | null
  best: { name: string; score: number } | null
}

export interface GenerateRequest {
  run: string
  prompt: string
  tokens: number
  temperature: number
  seed: number
}

/**
 * A generated token and the attention it was predicted with: `weights` holds 255·√weight as
 * [layer, head, key]; key 0 is position `first` of the text.
 */
export interface GeneratedToken {
  text: string
  first: number
  keys: number
  weights: Uint8Array
}

export interface GenerationStart {
  prompt: string[]
  layers: string[]
  heads: number[]
}

export interface SegmentRequest {
  run?: string
  text: string
  min_elements?: number
  max_elements?: number
  threshold?: number
}

export interface SegmentedText {
  segmenter: string
  threshold: number
  unit: string
  notes: string[]
  elements: { text: string; probability: number; is_boundary: boolean }[]
  segments: { first: number; last: number; title: string; probability: number | null }[]
}

export type RunFindings = { run: string; findings: Finding[] }

export async function request(path: string): Promise<Response> {
  const response = await fetch(path, { headers: { accept: "*/*" } })
  if (!response.ok)
    throw new Error(
      (await response.text()).trim() || `the server responded with status ${response.status}`,
    )
  return response
}

export function runUrl(id: string): string {
  return `api/runs/${encodeURIComponent(id)}`
}

/** POST, then yield the response line by line as JSON. A line with the key `error` is thrown. */
export async function* streamLines(
  path: string,
  body: object,
  signal: AbortSignal,
): AsyncGenerator<Record<string, unknown>> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  })
  if (!response.ok || !response.body) throw new Error((await response.text()).trim())
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let buffer = ""
  for (;;) {
    const { done, value } = await reader.read()
    const complete = (buffer + (value ?? "")).split("\n")
    buffer = complete.pop()!
    for (const json of complete) {
      const line = JSON.parse(json)
      if (typeof line.error === "string") throw new Error(line.error)
      yield line
    }
    if (done) return
  }
}
