// Names with their values, one per row.

export function DescriptionList({ rows }: { rows: [string, string][] }) {
  return (
    <dl class="description-list">
      {rows.map(([name, value], index) => (
        <div key={index}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
