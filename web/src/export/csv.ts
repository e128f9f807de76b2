// Numbers of a picture as CSV (RFC 4180).

export interface Table {
  head: string[]
  rows: (string | number | null)[][]
}

/** Numbers are written in full. Missing values are empty. */
export function formatCsv({ head, rows }: Table): string {
  return [head, ...rows].map((row) => `${row.map(formatField).join(",")}\r\n`).join("")
}

function formatField(value: string | number | null): string {
  if (value === null || (typeof value === "number" && Number.isNaN(value))) return ""
  if (typeof value === "number") return String(value)
  // a spreadsheet would execute a text that starts like a formula
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
