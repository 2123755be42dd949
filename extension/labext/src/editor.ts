// The plugin `pygpukit:editor`: `%%cuda` cells as CUDA, with what compiler and checker said, completion and hover.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { EditorExtensionRegistry, IEditorExtensionRegistry, IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { ICellModel } from '@jupyterlab/cells';
import { CudaCompletion } from './completion.js';
import { Cursors } from './cursors.js';
import { Diagnostics } from './diagnostics.js';
import { hover } from './hover.js';
import { addCuda } from './language.js';
import { CUDA_MIME } from './magic.js';
import { CudaMode } from './mode.js';
import { Reports } from './reports.js';
import { ICudaCells } from './tokens.js';

const ID = 'pygpukit:editor';

export const editorPlugin: JupyterFrontEndPlugin<ICudaCells> = {
  id: ID,
  description: 'Makes %%cuda cells CUDA: colours, indentation, diagnostics, completion, hover.',
  autoStart: true,
  provides: ICudaCells,
  requires: [INotebookTracker, IEditorLanguageRegistry, IEditorExtensionRegistry],
  optional: [ICompletionProviderManager, ISettingRegistry],
  activate: (
    _app: JupyterFrontEnd,
    tracker: INotebookTracker,
    languages: IEditorLanguageRegistry,
    extensions: IEditorExtensionRegistry,
    completion: ICompletionProviderManager | null,
    settings: ISettingRegistry | null,
  ): ICudaCells => {
    addCuda(languages);
    const reports = new Reports(tracker);
    const diagnostics = new Diagnostics();
    const cursors = new Cursors();
    extensions.addExtension({
      name: ID,
      factory: ({ model, inline }) =>
        inline
          ? EditorExtensionRegistry.createImmutableExtension([
              diagnostics.extension(model),
              cursors.extension(model),
              hover(model, reports.options),
            ])
          : null,
    });
    let shown = true;
    const show = (model: ICellModel): void => {
      const report = shown && model.mimeType === CUDA_MIME ? reports.of(model) : undefined;
      if (report) diagnostics.show(model, report.source, report.findings);
      else diagnostics.clear(model);
    };
    const mode = new CudaMode(tracker, (model: CodeEditor.IModel) => diagnostics.clear(model));
    reports.changed.connect((_, model) => show(model));
    completion?.registerProvider(new CudaCompletion());
    void settings?.load(ID).then((mine) => {
      const apply = (): void => {
        mode.setEnabled(mine.get('cudaMode').composite === true);
        shown = mine.get('diagnostics').composite === true;
        tracker.forEach(({ model }) => {
          for (const cell of model?.cells ?? []) show(cell);
        });
      };
      mine.changed.connect(apply);
      apply();
    });
    return { reports, cursors };
  },
};
