// Decoding of attention maps: 8 bits per weight on a square-root scale, deflated. The Python side
// encodes a layer as `NMAP` and all layers of a step as `NSTP`. Signed maps have negative weights.

/**
 * One layer's maps at one step: `cells[(head · queries + query) · keys + key]` is 255·√weight. The
 * cells of a signed map are ±127·√(|weight| / scale).
 */
export interface LayerMaps {
  name: string
  heads: number
  queries: number
  keys: number
  /** 0 where the mask hides a key from a query, [query, key]. */
  visible: Uint8Array
  /** Position of the first query among the keys. */
  first: number
  signed: boolean
  /** Largest |weight| that a cell can have. */
  scale: number
  cells: Uint8Array | Int8Array
}

export interface StepMaps {
  step: number
  layers: LayerMaps[]
}

const LAYER_HEADER_BYTES = 25
/** Versions: 1, 2 if it is signed; 2 more if it has a mask that is not causal. */
const MAX_MAP_VERSION = 4
/** A signed map has its scale, a 32-bit float, after the header. */
const SCALE_BYTES = 4

/** Decode all layers of a step. */
export async function decodeStep(bytes: Uint8Array<ArrayBuffer>, step: number): Promise<StepMaps> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < 9 || readAscii(bytes, 0, 4) !== "NSTP")
    throw new Error("not a file of attention maps")
  if (bytes[4] !== 1)
    throw new Error(`attention maps of version ${bytes[4]}; this page reads version 1`)
  const layers: Promise<LayerMaps>[] = []
  let offset = 9
  for (let layer = 0; layer < view.getUint32(5, true); layer++) {
    const length = view.getUint16(offset, true)
    const name = new TextDecoder().decode(bytes.subarray(offset + 2, offset + 2 + length))
    const size = view.getUint32(offset + 2 + length, true)
    offset += 6 + length
    layers.push(decodeLayer(bytes.subarray(offset, offset + size), name))
    offset += size
  }
  return { step, layers: await Promise.all(layers) }
}

/**
 * Maps in the order of a run's layers. A layer without maps at this step, such as one whose weights were
 * not finite, has no heads there; without it, the numbers of later layers would be wrong.
 */
export function alignLayers(maps: StepMaps, names: string[]): StepMaps {
  if (maps.layers.length >= names.length) return maps
  const layers = names.map(
    (name) =>
      maps.layers.find((layer) => layer.name === name) ?? {
        ...{ name, heads: 0, queries: 1, keys: 1, visible: new Uint8Array(1), first: 0 },
        ...{ signed: false, scale: 1, cells: new Uint8Array(0) },
      },
  )
  return { ...maps, layers }
}

async function decodeLayer(bytes: Uint8Array<ArrayBuffer>, name: string): Promise<LayerMaps> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const version = bytes[4]
  const signed = version % 2 === 0
  if (readAscii(bytes, 0, 4) !== "NMAP" || version < 1 || version > MAX_MAP_VERSION)
    throw new Error(`${name}: unknown format of attention maps`)
  const [heads, queries, keys, causal, first] = [0, 1, 2, 3, 4].map((index) =>
    view.getInt32(5 + 4 * index, true),
  )
  const scale = signed ? view.getFloat32(LAYER_HEADER_BYTES, true) : 1
  const stored = await inflate(bytes.subarray(LAYER_HEADER_BYTES + (signed ? SCALE_BYTES : 0)))
  const maskBytes = version > 2 ? Math.ceil((queries * keys) / 8) : 0
  const visible = Uint8Array.from({ length: queries * keys }, (_, pair) =>
    maskBytes
      ? (stored[pair >> 3] >> (pair & 7)) & 1
      : Number(!causal || pair % keys <= first + Math.floor(pair / keys)),
  )
  const cells = expandVisible(stored.subarray(maskBytes), heads, visible)
  const header = { name, heads, queries, keys, visible, first, signed, scale }
  return { ...header, cells: signed ? new Int8Array(cells.buffer) : cells }
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

/** Only the visible keys of every row are stored: expand them to full rows. */
function expandVisible(stored: Uint8Array, heads: number, visible: Uint8Array): Uint8Array {
  let next = 0
  return Uint8Array.from({ length: heads * visible.length }, (_, cell) =>
    visible[cell % visible.length] ? stored[next++] : 0,
  )
}

export function weightAt(maps: LayerMaps, head: number, query: number, key: number): number {
  return cellWeight(maps, maps.cells[(head * maps.queries + query) * maps.keys + key])
}

/** The weight that a cell stands for. */
export function cellWeight(maps: Pick<LayerMaps, "signed" | "scale">, cell: number): number {
  return maps.signed ? Math.sign(cell) * (cell / 127) ** 2 * maps.scale : (cell / 255) ** 2
}

function readAscii(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to))
}
