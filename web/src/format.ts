// Formatting of numbers, times and names.

export function formatNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–"
  if (value === 0) return "0"
  const magnitude = Math.abs(value)
  if (Number.isInteger(value)) return formatInteger(value)
  const text =
    magnitude >= 1000
      ? formatInteger(Math.round(value))
      : magnitude < 1e-4
        ? value.toExponential(2)
        : value.toPrecision(3)
  return text.replace("-", "−")
}

/** An attention weight with the digits that maps of 8 bits have: they are off by up to 0.004. */
export function formatWeight(weight: number): string {
  const size = Math.abs(weight)
  if (size < 0.001) return "< 0.001"
  return weight.toFixed(size < 0.01 ? 3 : 2).replace("-", "−")
}

export function formatInteger(value: number): string {
  return value.toLocaleString("en-US").replace("-", "−")
}

export function formatBytes(value: number): string {
  return value >= 1e6
    ? `${(value / 1e6).toFixed(1)} MB`
    : value >= 1e3
      ? `${(value / 1e3).toFixed(1)} kB`
      : `${value} B`
}

/** Unix time as local date and time. */
export function formatTime(seconds: number | null | undefined): string {
  if (!seconds) return "–"
  const date = new Date(seconds * 1000)
  const pad = (value: number) => String(value).padStart(2, "0")
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}`
}

export function formatDuration(seconds: number): string {
  if (seconds >= 5400) return `${(seconds / 3600).toFixed(1)} h`
  return seconds >= 90 ? `${(seconds / 60).toFixed(1)} min` : `${seconds.toFixed(0)} s`
}

/** `relative_entropy` → `relative entropy`. */
export function formatName(name: string): string {
  return name.replaceAll("_", " ")
}

/** A run's name without the date prefix of its folder. */
export function stripDate(name: string): string {
  return name.replace(/^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_(?=.)/, "")
}

/** Names without date prefixes if they stay unique. */
export function stripDates(names: string[]): string[] {
  const short = names.map(stripDate)
  return new Set(short).size === names.length ? short : names
}

/** `1 layer`, `4 layers`. */
export function formatCount(count: number, noun: string): string {
  return `${formatInteger(count)} ${noun}${count === 1 ? "" : "s"}`
}

/** `L0 h3`, as commands and findings name heads; counted from 0, as modules are. */
export function formatHead(layer: number, head?: number): string {
  return head === undefined ? `L${layer}` : `L${layer} h${head}`
}

/** A setting's value on one line. */
export function formatSetting(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "–")
}

/** Makes whitespace visible. */
export function formatToken(text: string): string {
  return text === "" ? "∅" : text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥")
}

/** The message of a caught value. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
