// The commands of the extension.

export namespace CommandIDs {
  /** Ask the current notebook's kernel for its GPU status and show the answer. */
  export const showStatus = 'pygpukit:show-status';
  /** Open the pane with the compiled code of the notebook's kernels. */
  export const openAssembly = 'pygpukit:open-assembly';
  /** Show one live dashboard beside the notebook. */
  export const openView = 'pygpukit:open-view';
  /** Put memory, scheduler and the pane with the code beside the notebook. */
  export const openWorkbench = 'pygpukit:open-workbench';
  /** Ask the notebook's model about the active cell. */
  export const explainCell = 'pygpukit:explain-cell';
  /** Make a notebook that begins with the extension loaded and the workbench beside it. */
  export const newWorkbench = 'pygpukit:new-workbench';
  /** Make a notebook that begins with a chat. */
  export const newChat = 'pygpukit:new-chat';
}

export const CATEGORY = 'pygpukit';
export const NO_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: false } as const;
