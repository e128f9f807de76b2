// The newest evaluation of a run, and sections that its task adds: a text and a table each.

import { formatNumber } from "../format"
import type { PaneDefinition, PaneProps } from "../pane"
import type { Section } from "../run_data"

function SectionsPane({ run }: PaneProps) {
  return (
    <>
      {run?.sections.map((section) => (
        <TaskSection key={section.title} section={section} />
      ))}
    </>
  )
}

function TaskSection({ section }: { section: Section }) {
  return (
    <section class="card">
      <h2>{section.title}</h2>
      {section.text ? section.text.split("\n").map((line, row) => <p key={row}>{line}</p>) : null}
      {section.table_rows.length ? (
        <div class="scroll-x">
          <table>
            {section.table_head.length ? (
              <thead>
                <tr>
                  {section.table_head.map((title, column) => (
                    <th key={column}>{title}</th>
                  ))}
                </tr>
              </thead>
            ) : null}
            <tbody>
              {section.table_rows.map((cells, row) => (
                <tr key={row}>
                  {cells.map((cell, column) => (
                    <td key={column} class={typeof cell === "number" ? "right" : ""}>
                      {formatCell(cell)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </section>
  )
}

export function formatCell(cell: string | number | null): string {
  if (cell === null) return ""
  return typeof cell === "number" ? formatNumber(cell) : cell
}

export default {
  title: "Task",
  missing: "evaluation and no sections of its task",
  titleFor: ({ run }) => run?.sections[0]?.title || "Task",
  order: 80,
  component: SectionsPane,
  applies: ({ run }) => run !== null && run.sections.length > 0,
} satisfies PaneDefinition
