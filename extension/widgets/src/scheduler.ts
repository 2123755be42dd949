// anywidget module of SchedulerWidget.

import { SchedulerView } from '@pygpukit/views';
import { dashboard } from './dashboard.js';

export default dashboard((host, store, channel) => new SchedulerView(host, store, channel));
