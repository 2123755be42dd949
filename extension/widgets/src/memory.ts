// anywidget module of MemoryWidget.

import { MemoryView } from '@pygpukit/views';
import { dashboard } from './dashboard.js';

export default dashboard((host, store, channel) => new MemoryView(host, store, channel));
