// The public face of the core: what views and widgets may import. No DOM in this folder.

export { FrameError, decodeFrame, type Frame, type Gauges } from './frame.js';
export { Kind, RecordBlock, RECORD_BYTES } from './records.js';
export { PHASES, REASONS, Phase, WAITING_FOR_RESUME, isTerminal, type PhaseName } from './phases.js';
export { parseSnapshot, type Snapshot, type TaskRow } from './snapshot.js';
export { type CellFigures, type DeviceField, type DeviceSample, type Holding, type ModelContext, type Partition } from './messages.js';
export { type Link, Links } from './links.js';
export { BUCKET_NS, Shares } from './shares.js';
export { ContextPromises, promisedSteps, type Step } from './promises.js';
export { Recent } from './recent.js';
export { summarise, histogram, type Latency } from './latency.js';
export { Channel, QUEUED_AFTER_MS } from './channel.js';
export { GAP_NS, History } from './history.js';
export { BlockMap, fragmentation, gaps, type Block } from './blocks.js';
export { Evictions, type Stretch } from './evictions.js';
export { TaskTable, type Task, type Span } from './tasks.js';
export { Store, type MemoryEvent, type Transition } from './store.js';
export { BLOCK, Chunks } from './sound/chunks.js';
export { Queue, hasTime, type Piece, type Timing } from './sound/queue.js';
export { Pace } from './sound/pace.js';
export { SoundStore } from './sound/store.js';
export { type Asks, type Look, type Sound } from './sound/messages.js';
export { TalkStore, type TalkTurn } from './talk.js';
export * as format from './format.js';
export { CHUNK, TimelineData, readHead, type Head, type Lane, type Place } from './timeline/data.js';
export { Levels, type Columns, type Paint } from './timeline/levels.js';
export { TIMELINE_GROUPINGS, makeRows, type TimelineGrouping, type TimelineRow } from './timeline/rows.js';
export { nextMatch, searched, sums, type TimelineSum } from './timeline/sums.js';
