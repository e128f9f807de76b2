// Numbers and times in words that people read.

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–"
  if (value === 0) return "0"
  const size = Math.abs(value)
  if (Number.isInteger(value)) return whole(value)
  const text = size >= 1000 ? whole(Math.round(value)) : size < 1e-4 ? value.toExponential(2) : value.toPrecision(3)
  return text.replace("-", "−")
}

export function whole(value: number): string {
  return value.toLocaleString("en-US").replace("-", "−")
}

export function bytes(value: number): string {
  return value >= 1e6 ? `${(value / 1e6).toFixed(1)} MB` : value >= 1e3 ? `${(value / 1e3).toFixed(1)} kB` : `${value} B`
}

/** A moment given in seconds since 1970, in the reader's time. */
export function moment(seconds: number | null | undefined): string {
  if (!seconds) return "–"
  const at = new Date(seconds * 1000)
  const two = (part: number) => String(part).padStart(2, "0")
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`
}

export function span(seconds: number): string {
  if (seconds >= 5400) return `${(seconds / 3600).toFixed(1)} h`
  return seconds >= 90 ? `${(seconds / 60).toFixed(1)} min` : `${seconds.toFixed(0)} s`
}

/** `relative_entropy` as people say it. */
export function words(name: string): string {
  return name.replaceAll("_", " ")
}

/** A run's name without the date that its folder begins with. */
export function short(name: string): string {
  return name.replace(/^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_(?=.)/, "")
}

/** Names without their dates, where that leaves them different. */
export function shortened(names: string[]): string[] {
  const brief = names.map(short)
  return new Set(brief).size === names.length ? brief : names
}

/** `1 layer`, `4 layers`. */
export function counted(count: number, what: string): string {
  return `${whole(count)} ${what}${count === 1 ? "" : "s"}`
}

/** As commands and findings call a layer and a head: counted from 0, as the modules are. */
export function headName(layer: number, head?: number): string {
  return `L${layer}` + (head === undefined ? "" : ` h${head}`)
}

/** A setting's value as one line. */
export function said(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "–"
}

/** A token that can be seen: blanks and ends of lines get a sign. */
export function token(text: string): string {
  return text === "" ? "∅" : text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥")
}
