// The plugins of the extension.

import { assemblyPlugin } from './assembly.js';
import { chatPlugin } from './chat.js';
import { editorPlugin } from './editor.js';
import { picturesPlugin } from './pictures.js';
import { statusPlugin } from './status.js';
import { viewsPlugin } from './views.js';
import { workbenchPlugin } from './workbench.js';

export default [editorPlugin, assemblyPlugin, chatPlugin, picturesPlugin, statusPlugin, viewsPlugin, workbenchPlugin];
