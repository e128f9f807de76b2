// Attention maps: 8 bits on a square-root scale, deflated; the format is told in neural/tracking/quantised.py.

/** One layer's maps at one step: `cells[(head · queries + query) · keys + key]` is 255·√weight. */
export interface LayerMaps {
  name: string
  heads: number
  queries: number
  keys: number
  causal: boolean
  /** The key that the first query stands at. */
  first: number
  cells: Uint8Array
}

export interface StepMaps {
  step: number
  layers: LayerMaps[]
}

const HEADER = 25

/** All layers of a step, as neural/views/report_data.py packs them. */
export async function decodeStep(bytes: Uint8Array<ArrayBuffer>, step: number): Promise<StepMaps> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < 9 || ascii(bytes, 0, 4) !== "NSTP") throw new Error("these are not the maps of a step")
  if (bytes[4] !== 1) throw new Error(`maps of version ${bytes[4]}; this page reads version 1`)
  const found: Promise<LayerMaps>[] = []
  let at = 9
  for (let layer = 0; layer < view.getUint32(5, true); layer++) {
    const length = view.getUint16(at, true)
    const name = new TextDecoder().decode(bytes.subarray(at + 2, at + 2 + length))
    const size = view.getUint32(at + 2 + length, true)
    at += 6 + length
    found.push(decodeLayer(bytes.subarray(at, at + size), name))
    at += size
  }
  return { step, layers: await Promise.all(found) }
}

async function decodeLayer(bytes: Uint8Array<ArrayBuffer>, name: string): Promise<LayerMaps> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (ascii(bytes, 0, 4) !== "NMAP" || bytes[4] !== 1) throw new Error(`${name}: not a map that this page reads`)
  const [heads, queries, keys, causal, first] = [0, 1, 2, 3, 4].map((index) => view.getInt32(5 + 4 * index, true))
  const kept = await inflated(bytes.subarray(HEADER))
  const whole = { name, heads, queries, keys, causal: causal === 1, first }
  return { ...whole, cells: causal === 1 ? squared(kept, heads, queries, keys, first) : kept }
}

async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

/** A causal map has of every row only what its query could see: put each row in its place. */
export function squared(kept: Uint8Array, heads: number, queries: number, keys: number, first: number): Uint8Array {
  const cells = new Uint8Array(heads * queries * keys)
  let from = 0
  for (let row = 0; row < heads * queries; row++) {
    const seen = visible({ causal: true, first, keys }, row % queries)
    cells.set(kept.subarray(from, from + seen), row * keys)
    from += seen
  }
  return cells
}

/** How many keys a query could see. */
export function visible(maps: Pick<LayerMaps, "causal" | "first" | "keys">, query: number): number {
  return maps.causal ? Math.max(0, Math.min(maps.keys, maps.first + query + 1)) : maps.keys
}

export function weight(maps: LayerMaps, head: number, query: number, key: number): number {
  return (maps.cells[(head * maps.queries + query) * maps.keys + key] / 255) ** 2
}

function ascii(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to))
}
