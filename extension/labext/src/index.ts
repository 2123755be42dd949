// The plugins of the extension.

import { assemblyPlugin } from './assembly.js';
import { editorPlugin } from './editor.js';
import { statusPlugin } from './status.js';
import { viewsPlugin } from './views.js';
import { workbenchPlugin } from './workbench.js';

export default [editorPlugin, assemblyPlugin, statusPlugin, viewsPlugin, workbenchPlugin];
