// DOM views over a telemetry store. Each takes a host element and returns what ends it.

export { MemoryView } from './memory/view.js';
export { CellsView } from './cells/view.js';
export { DeviceView } from './device/view.js';
export { LinksView } from './links/view.js';
export { SchedulerView } from './scheduler/view.js';
export type { Panel } from './panel.js';
export { PlayerView } from './sound/view.js';
export { SpectrogramView, type Shape } from './sound/moving.js';
export { RecorderView, type RecorderState } from './sound/recorder.js';
export { TalkView } from './sound/talk.js';
export { Output, RATES } from './sound/output.js';
export { TimelineView } from './timeline/view.js';
export { type Brush, type Frame, paintRows } from './timeline/plot.js';
export { ChatView, type Draft } from './chat/view.js';
export { isInertMarkdown } from './chat/markdown.js';
export { typeset } from './chat/math.js';
export { transcript } from './chat/transcript.js';
export { read as readChat } from './chat/messages.js';
