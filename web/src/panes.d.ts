// `import panes from "panes:./folder"` is resolved by the plugin in build.mjs.

declare module "panes:*" {
  const panes: import("./pane").Pane[]
  export default panes
}
