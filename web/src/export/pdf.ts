// Writes a drawing as a PDF file of one page, without a date: the same drawing gives the same bytes.
//
// Text stays text, in the standard fonts Helvetica and Courier, which every reader has, so nothing is
// embedded. These fonts have the characters of Windows-1252. A few others are written with those (an arrow
// as "->", the sign for a space as "_"); the rest is drawn as "?" and returned, so that the page can say so.

import { boxCommands, formatLength as format } from "./shapes"
import type { Command, Drawing, ImageShape, Paint, PathShape, TextShape } from "./shapes"

/** Points per CSS pixel. */
const SCALE = 0.75

const FONTS = ["Helvetica", "Helvetica-Bold", "Courier", "Courier-Bold"]

/** Characters of Windows-1252 from 128 on; a space where it has none. */
const HIGH_CHARACTERS = "€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ"

const REPLACEMENTS: Record<string, string> = {
  ...{ "−": "–", "→": "->", "←": "<-", "↑": "^", "↓": "v", "␣": "_", "⏎": "¶", "↵": "¶", "␤": "¶" },
  ...{ "≤": "<=", "≥": ">=", "≈": "~", "≠": "!=", "√": "sqrt", "\u2009": " ", "\u202f": " " },
  ...{
    "\u2011": "-",
    "⇥": ">",
    "∅": "Ø",
    "▸": ">",
    "✓": "ok",
    "✗": "x",
    "●": "•",
    "\t": " ",
    "\n": " ",
  },
}

/** Widths of the characters 32 … 126 in thousandths of the font size (Adobe's font metrics). */
const WIDTHS = {
  plain: parseWidths(
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556*10 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584",
  ),
  bold: parseWidths(
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556*10 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556 611 556 611 556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 280 389 584",
  ),
}
const WIDE_CHARACTERS: Record<string, number> = {
  "…": 1000,
  "—": 1000,
  "·": 278,
  "×": 584,
  "±": 584,
}

export interface PdfFile {
  bytes: Uint8Array<ArrayBuffer>
  /** Characters that the fonts do not have, drawn as "?". */
  missing: string[]
}

/** `compress` is zlib's deflate. */
export async function writePdf(
  { width, height, shapes }: Drawing,
  title: string,
  compress: (bytes: Uint8Array<ArrayBuffer>) => Promise<Uint8Array<ArrayBuffer>> = deflate,
): Promise<PdfFile> {
  const objects: Uint8Array<ArrayBuffer>[] = []
  const addObject = (dictionary: string, stream?: Uint8Array<ArrayBuffer>) => {
    objects.push(
      stream
        ? joinBytes([
            encode(`${dictionary.slice(0, -2)} /Length ${stream.length} >>\nstream\n`),
            stream,
            encode("\nendstream"),
          ])
        : encode(dictionary),
    )
    return objects.length
  }
  addObject("<< /Type /Catalog /Pages 2 0 R >>")
  addObject("<< /Type /Pages /Kids [3 0 R] /Count 1 >>")
  const page = addObject("") // written below, when its resources are known
  const missing = new Set<string>()
  const opacities = new Map<string, string>()
  const images: string[] = []
  const fonts = new Set<number>()
  const setOpacity = (fill: number, stroke: number) => {
    const key = `/ca ${format(fill, 3)} /CA ${format(stroke, 3)}`
    const name = opacities.get(key) ?? `G${opacities.size}`
    opacities.set(key, name)
    return `/${name} gs`
  }
  // pixels from the upper left corner, as on the screen
  const content = [`${SCALE} 0 0 ${-SCALE} 0 ${format(height * SCALE)} cm`]
  for (const shape of shapes) {
    content.push("q")
    if (shape.kind !== "text" && shape.clip)
      content.push(`${writeCommands(boxCommands(shape.clip))} W n`)
    if (shape.kind === "path") {
      content.push(setOpacity(shape.fill?.[3] ?? 1, shape.stroke?.[3] ?? 1), ...writePath(shape))
    } else if (shape.kind === "image") {
      const name = `I${images.length}`
      images.push(`/${name} ${await addImage(shape, addObject, compress)} 0 R`)
      const [x, y, w, h] = shape.box
      content.push(
        setOpacity(shape.opacity, 1),
        `${format(w)} 0 0 ${format(-h)} ${format(x)} ${format(y + h)} cm /${name} Do`,
      )
    } else {
      const font = (shape.isMonospaced ? 2 : 0) + (shape.isBold ? 1 : 0)
      fonts.add(font)
      content.push(setOpacity(shape.fill[3], 1), writeText(shape, font, missing))
    }
    content.push("Q")
  }
  const contentId = addObject("<<  >>", encode(content.join("\n")))
  const fontIds = [...fonts].sort().map((font) => {
    const id = addObject(
      `<< /Type /Font /Subtype /Type1 /BaseFont /${FONTS[font]} /Encoding /WinAnsiEncoding >>`,
    )
    return `/F${font} ${id} 0 R`
  })
  const states = [...opacities].map(([key, name]) => `/${name} << ${key} >>`)
  objects[page - 1] = encode(
    [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${format(width * SCALE)} ${format(height * SCALE)}]`,
      `/Resources << /Font << ${fontIds.join(" ")} >> /ExtGState << ${states.join(" ")} >>`,
      `/XObject << ${images.join(" ")} >> >> /Contents ${contentId} 0 R >>`,
    ].join(" "),
  )
  const info = addObject(`<< /Title (${escapeString(toWindows1252(title, new Set()))}) >>`)
  return { bytes: writeFile(objects, info), missing: [...missing] }
}

function writeFile(objects: Uint8Array<ArrayBuffer>[], info: number): Uint8Array<ArrayBuffer> {
  const chunks = [encode("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")]
  let offset = chunks[0].length
  const offsets = objects.map((object, index) => {
    const chunk = joinBytes([encode(`${index + 1} 0 obj\n`), object, encode("\nendobj\n")])
    chunks.push(chunk)
    offset += chunk.length
    return offset - chunk.length
  })
  const rows = offsets.map((start) => `${String(start).padStart(10, "0")} 00000 n \n`)
  chunks.push(
    encode(
      `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows.join("")}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R /Info ${info} 0 R >>\nstartxref\n${offset}\n%%EOF\n`,
    ),
  )
  return joinBytes(chunks)
}

function writePath(shape: PathShape): string[] {
  const lines: string[] = []
  if (shape.fill) lines.push(`${writeColour(shape.fill)} rg`)
  if (shape.stroke) {
    lines.push(`${writeColour(shape.stroke)} RG ${format(shape.strokeWidth)} w`)
    if (shape.isRound) lines.push("1 J 1 j")
    if (shape.dash.length) lines.push(`[${shape.dash.map((gap) => format(gap)).join(" ")}] 0 d`)
  }
  const operator = shape.fill ? (shape.stroke ? "B" : "f") : shape.stroke ? "S" : "n"
  return [...lines, `${writeCommands(shape.commands)} ${operator}`]
}

function writeCommands(commands: Command[]): string {
  const operators = { M: "m", L: "l", C: "c", Z: "h" }
  return commands
    .map(([operator, ...numbers]) =>
      [...numbers.map((value) => format(value as number)), operators[operator]].join(" "),
    )
    .join(" ")
}

function writeColour(paint: Paint): string {
  return paint
    .slice(0, 3)
    .map((level) => format(level / 255, 3))
    .join(" ")
}

function writeText(shape: TextShape, font: number, missing: Set<string>): string {
  const text = toWindows1252(shape.text, missing)
  const shift =
    { start: 0, middle: 0.5, end: 1 }[shape.anchor] * measureText(text, font) * shape.size
  const radians = (shape.angle * Math.PI) / 180
  const [cos, sin] = [Math.cos(radians), Math.sin(radians)]
  // the y axis points down, so the matrix mirrors the letters back
  const matrix = [cos, sin, sin, -cos].map((value) => format(value, 4)).join(" ")
  const position = `${format(shape.x - shift * cos)} ${format(shape.y - shift * sin)}`
  return `BT ${writeColour(shape.fill)} rg /F${font} ${format(shape.size)} Tf ${matrix} ${position} Tm (${escapeString(text)}) Tj ET`
}

/** Width of a text in multiples of the font size. */
function measureText(text: string, font: number): number {
  if (font >= 2) return [...text].length * 0.6
  const widths = font === 1 ? WIDTHS.bold : WIDTHS.plain
  let total = 0
  for (const character of text)
    total += widths[character.charCodeAt(0) - 32] ?? WIDE_CHARACTERS[character] ?? 556
  return total / 1000
}

function parseWidths(text: string): number[] {
  return text.split(" ").flatMap((part) => {
    const [width, count] = part.split("*").map(Number)
    return new Array<number>(count || 1).fill(width)
  })
}

/** The text with characters of Windows-1252 only. */
function toWindows1252(text: string, missing: Set<string>): string {
  let result = ""
  for (const character of text) {
    const replaced = REPLACEMENTS[character] ?? character
    if (replaced !== character || windowsCode(character) !== null) result += replaced
    else {
      result += "?"
      missing.add(character)
    }
  }
  return result
}

function windowsCode(character: string): number | null {
  const code = character.codePointAt(0)!
  if ((code >= 32 && code < 127) || (code >= 160 && code < 256)) return code
  const high = HIGH_CHARACTERS.indexOf(character)
  return high < 0 || character === " " ? null : 128 + high
}

/** Inside of a PDF string, with bytes above 126 in octal. */
function escapeString(text: string): string {
  return [...text]
    .map((character) => {
      const code = windowsCode(character)!
      if ("()\\".includes(character)) return `\\${character}`
      return code > 126 ? `\\${code.toString(8)}` : character
    })
    .join("")
}

type AddObject = (dictionary: string, stream?: Uint8Array<ArrayBuffer>) => number

async function addImage(
  { pixels, isPixelated }: ImageShape,
  addObject: AddObject,
  compress: (bytes: Uint8Array<ArrayBuffer>) => Promise<Uint8Array<ArrayBuffer>>,
): Promise<number> {
  const count = pixels.width * pixels.height
  const [colours, alphas] = [new Uint8Array(3 * count), new Uint8Array(count)]
  for (let index = 0; index < count; index++) {
    for (let channel = 0; channel < 3; channel++)
      colours[3 * index + channel] = pixels.data[4 * index + channel]
    alphas[index] = pixels.data[4 * index + 3]
  }
  const shared = `<< /Type /XObject /Subtype /Image /Width ${pixels.width} /Height ${pixels.height} /BitsPerComponent 8 /Filter /FlateDecode /Interpolate ${!isPixelated}`
  const mask = alphas.some((alpha) => alpha < 255)
    ? ` /SMask ${addObject(`${shared} /ColorSpace /DeviceGray >>`, await compress(alphas))} 0 R`
    : ""
  return addObject(`${shared} /ColorSpace /DeviceRGB${mask} >>`, await compress(colours))
}

async function deflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

/** All characters are below 256. */
function encode(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

function joinBytes(chunks: Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(chunks.reduce((total, chunk) => total + chunk.length, 0))
  let offset = 0
  for (const chunk of chunks) {
    joined.set(chunk, offset)
    offset += chunk.length
  }
  return joined
}
