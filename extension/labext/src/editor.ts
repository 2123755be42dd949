// The plugin `pygpukit:editor`: `%%cuda` cells as CUDA, with what compiler and checker said, completion and hover.

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { EditorExtensionRegistry, IEditorExtensionRegistry, IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { ICompletionProviderManager } from '@jupyterlab/completer';
import { ILSPCodeExtractorsManager, ILSPDocumentConnectionManager } from '@jupyterlab/lsp';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { EditorView } from '@codemirror/view';
import type { ICellModel } from '@jupyterlab/cells';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { CudaCompletion } from './completion.js';
import { Cursors } from './cursors.js';
import { Diagnostics, diagnosed } from './diagnostics.js';
import { Editors } from './editors.js';
import { hover } from './hover.js';
import { addCuda } from './language.js';
import { LanguageServer, type Wish } from './language-server.js';
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
  optional: [ICompletionProviderManager, ISettingRegistry, ILSPCodeExtractorsManager, ILSPDocumentConnectionManager],
  activate: (
    _app: JupyterFrontEnd,
    tracker: INotebookTracker,
    languages: IEditorLanguageRegistry,
    extensions: IEditorExtensionRegistry,
    completion: ICompletionProviderManager | null,
    settings: ISettingRegistry | null,
    extractors: ILSPCodeExtractorsManager | null,
    documents: ILSPDocumentConnectionManager | null,
  ): ICudaCells => {
    addCuda(languages);
    const reports = new Reports(tracker);
    const server = new LanguageServer(extractors, documents?.languageServerManager ?? null);
    const editorsOf = (model: CodeEditor.IModel): readonly EditorView[] => editors.of(model);
    const diagnostics = new Diagnostics(editorsOf);
    const cursors = new Cursors(editorsOf);
    const editors = new Editors(
      (model) => [diagnosed, cursors.extension(model), hover(model, reports.options, server)],
      (model) => diagnostics.has(model),
      (model) => diagnostics.apply(model),
    );
    const mode = new CudaMode((model) => diagnostics.clear(model));
    extensions.addExtension({
      name: ID,
      factory: ({ model, inline }) => {
        if (!inline) return null;
        mode.follow(model);
        return EditorExtensionRegistry.createImmutableExtension(editors.extension(model));
      },
    });
    let shown = true;
    const show = (model: ICellModel): void => {
      const report = shown && mode.covers(model) ? reports.of(model) : undefined;
      if (report) diagnostics.show(model, report.source, report.findings);
      else diagnostics.clear(model);
    };
    reports.changed.connect((_, model) => show(model));
    completion?.registerProvider(new CudaCompletion(server));
    void settings?.load(ID).then((mine) => {
      const apply = (): void => {
        mode.setEnabled(mine.get('cudaMode').composite === true);
        server.set(mine.get('languageServer').composite as Wish);
        shown = mine.get('diagnostics').composite === true;
        tracker.forEach(({ model }) => {
          for (const cell of model?.cells ?? []) {
            mode.check(cell);
            show(cell);
          }
        });
      };
      mine.changed.connect(apply);
      apply();
    });
    return { reports, cursors };
  },
};
