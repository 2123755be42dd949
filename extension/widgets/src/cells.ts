// anywidget module of CellsWidget.

import { CellsView } from '@pygpukit/views';
import { dashboard } from './dashboard.js';

export default dashboard((host, store, channel) => new CellsView(host, store, channel));
