// Form controls with a label.

import { formatName } from "../format"

interface SelectProps {
  label: string
  value: string
  options: string[]
  onChange: (value: string) => void
}

export function Select({ label, value, options, onChange }: SelectProps) {
  return (
    <label class="choice">
      {label ? <span class="muted">{label} </span> : null}
      <select
        aria-label={label || "choice"}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {options.map((option) => (
          <option key={option} value={option}>
            {formatName(option)}
          </option>
        ))}
      </select>
    </label>
  )
}

export function Checkbox({
  label,
  checked,
  onChange,
}: {
  label: string
  checked: boolean
  onChange: (checked: boolean) => void
}) {
  return (
    <label class="choice">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />{" "}
      {label}
    </label>
  )
}
