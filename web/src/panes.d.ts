// `import panes from "panes:./folder"` and `figures:./folder` are resolved by the plugin in build.mjs.

declare module "panes:*" {
  const panes: import("./pane").Pane[]
  export default panes
}

declare module "figures:*" {
  const figures: import("./figure").Figure[]
  export default figures
}
