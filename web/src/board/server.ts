// What is asked of the server, and what it answers.

import type { Brief, Finding } from "../model"

/** A run in the list. */
export interface Listed extends Omit<Brief, "best"> {
  kind: "run" | "broken"
  sweep: string | null
  task?: string
  seed?: number | null
  loss?: number | null
  best: { name: string; score: number } | null
}

export interface ToWrite {
  run: string
  prompt: string
  tokens: number
  temperature: number
  seed: number
}

/** A piece of text, and what it was predicted from: 255·√weight, [layer, head, key]; the keys begin at `first`. */
export interface Piece {
  text: string
  first: number
  keys: number
  seen: Uint8Array
}

export interface Begun {
  prompt: string[]
  layers: string[]
  heads: number[]
}

export interface ToCut {
  run?: string
  text: string
  least?: number
  most?: number
  threshold?: number
}

export interface CutText {
  segmenter: string
  threshold: number
  unit: string
  remarks: string[]
  elements: { text: string; probability: number; begins: boolean }[]
  parts: { first: number; last: number; title: string; probability: number | null }[]
}

export type FoundIn = { run: string; findings: Finding[] }

export async function asked(path: string): Promise<Response> {
  const answer = await fetch(path, { headers: { accept: "*/*" } })
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the board answers ${answer.status}`)
  return answer
}

export function addressOf(id: string): string {
  return `api/runs/${encodeURIComponent(id)}`
}

/** The answer's lines, each as it comes. A line that tells of a mistake is an error. */
export async function* lines(path: string, body: object, stop: AbortSignal): AsyncGenerator<Record<string, unknown>> {
  const answer = await fetch(path, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal: stop,
  })
  if (!answer.ok || !answer.body) throw new Error((await answer.text()).trim())
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { done, value } = await reader.read()
    const parts = (rest + (value ?? "")).split("\n")
    rest = parts.pop()!
    for (const part of parts) {
      const line = JSON.parse(part)
      if (typeof line.error === "string") throw new Error(line.error)
      yield line
    }
    if (done) return
  }
}
