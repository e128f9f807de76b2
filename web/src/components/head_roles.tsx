// The role of every head as a table: one row per layer, one column per head.

import { formatHead } from "../format"

interface Props {
  /** Names by layer and head; "" where a layer has fewer heads. */
  roles: string[][]
  layer: number
  head: number
  onHead: (layer: number, head: number) => void
}

export function HeadRoles({ roles, layer, head, onHead }: Props) {
  const columns = Math.max(0, ...roles.map((names) => names.length))
  return (
    <>
      <h2>
        Head roles <small>what each head does; mixed: none of the known roles</small>
      </h2>
      <div class="scroll-x">
        <table class="roles">
          <thead>
            <tr>
              <td />
              {Array.from({ length: columns }, (_, index) => (
                <th key={index} scope="col">
                  h{index}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {roles.map((names, row) => (
              <tr key={row}>
                <th scope="row">{formatHead(row)}</th>
                {names.map((name, index) => (
                  <td key={index}>
                    {name ? (
                      <button
                        type="button"
                        class={row === layer && index === head ? "link selected" : "link"}
                        onClick={() => onHead(row, index)}
                      >
                        {name}
                      </button>
                    ) : null}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}
