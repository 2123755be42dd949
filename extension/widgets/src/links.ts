// anywidget module of LinksWidget.

import { LinksView } from '@pygpukit/views';
import { dashboard } from './dashboard.js';

export default dashboard((host, store, channel) => new LinksView(host, store, channel));
