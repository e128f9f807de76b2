// A picture with a menu that saves it as a file.

import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"

import "../styles/export.css"
import { withLightTheme } from "../theme"
import { formatCsv, type Table } from "./csv"
import { drawElement } from "./dom_drawing"
import { writePdf } from "./pdf"
import { encodePng, writePng } from "./png"
import { writeSvg } from "./svg"

interface MenuProps {
  /** Name of the file, without ending. */
  name: string
  /** What the file says below the name: what axes and colours are. */
  caption?: string
  /** The element that is saved. */
  picture: () => Element | null
  /** Numbers of the picture; there is no CSV without. */
  csv?: () => Table
}

/** Content that can be saved as SVG, PDF and PNG, and its numbers as CSV. */
export function Picture({
  name,
  csv,
  isCard = false,
  children,
}: Pick<MenuProps, "name" | "csv"> & {
  /** Whether space is small: a narrow screen has no menu then. */
  isCard?: boolean
  children: ComponentChildren
}) {
  const content = useRef<HTMLDivElement>(null)
  return (
    <div class={isCard ? "picture-frame in-card" : "picture-frame"}>
      <div ref={content}>{children}</div>
      <ExportMenu name={name} picture={() => content.current} csv={csv} />
    </div>
  )
}

type Format = "SVG" | "PDF" | "PNG" | "CSV"

/** The button "⤓" with the formats. */
export function ExportMenu({ name, caption, picture, csv }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null)
  const [message, setMessage] = useState("")
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    if (!isOpen) return
    const closeOutside = (event: PointerEvent) => {
      if (!menu.current?.contains(event.target as Node)) setOpen(false)
    }
    document.addEventListener("pointerdown", closeOutside)
    return () => document.removeEventListener("pointerdown", closeOutside)
  }, [isOpen])
  const save = async (format: Format) => {
    try {
      const missing = await saveAs(format, name, picture, csv, caption)
      setMessage(
        missing.length
          ? `${missing.join(" ")} ${missing.length > 1 ? "are" : "is"} not in the fonts of PDF and drawn as ?; the SVG has all characters`
          : "",
      )
      if (!missing.length) setOpen(false)
    } catch (error) {
      setMessage(`not saved: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  const formats: Format[] = ["SVG", "PDF", "PNG", ...(csv ? ["CSV" as const] : [])]
  return (
    <details
      class="export-menu"
      data-export="omit"
      ref={menu}
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !event.currentTarget.open) return
        event.stopPropagation() // the page's own shortcuts
        event.currentTarget.open = false
        event.currentTarget.querySelector("summary")?.focus()
      }}
    >
      <summary title="Save this picture" aria-label={`Save ${name}`}>
        ⤓
      </summary>
      <div class="export-formats">
        {formats.map((format) => (
          <button type="button" key={format} onClick={() => save(format)}>
            {format}
          </button>
        ))}
        {message ? <p role="status">{message}</p> : null}
      </div>
    </details>
  )
}

/** Returns the characters that the file could not hold. */
async function saveAs(
  format: Format,
  name: string,
  picture: () => Element | null,
  csv?: () => Table,
  caption?: string,
): Promise<string[]> {
  const save = (content: BlobPart | Blob, type: string) =>
    download(content instanceof Blob ? content : new Blob([content], { type }), name, format)
  if (format === "CSV") {
    save(formatCsv(csv!()), "text/csv;charset=utf-8")
    return []
  }
  const drawing = await withLightTheme(async () => {
    const element = picture()
    if (!element) throw new Error("the picture is not on the page")
    if (caption === undefined) return drawElement(element)
    // a file stands alone: it has a title and shows no selection
    const title = document.createElement("p")
    title.className = "export-title"
    title.append(`${name}; ${caption}`)
    element.prepend(title)
    element.classList.add("exporting")
    try {
      return drawElement(element)
    } finally {
      element.classList.remove("exporting")
      title.remove()
    }
  })
  if (format === "SVG") save(writeSvg(drawing, name, encodePng), "image/svg+xml")
  else if (format === "PNG") save(await writePng(drawing), "image/png")
  else {
    const { bytes, missing } = await writePdf(drawing, name)
    save(bytes, "application/pdf")
    return missing
  }
  return []
}

function download(blob: Blob, name: string, format: Format): void {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  const stem = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|-+$/g, "") || "picture"
  link.download = `${stem}.${format.toLowerCase()}`
  link.click()
  // after the browser has begun to read it
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
