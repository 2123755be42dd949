// anywidget module of DeviceWidget.

import { DeviceView } from '@pygpukit/views';
import { dashboard } from './dashboard.js';

export default dashboard((host, store, channel) => new DeviceView(host, store, channel));
