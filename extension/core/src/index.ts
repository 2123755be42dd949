// The public face of the core: what views and widgets may import. No DOM in this folder.

export { FrameError, decodeFrame, type Frame, type Gauges } from './frame.js';
export { Kind, RecordBlock, RECORD_BYTES } from './records.js';
export { PHASES, REASONS, Phase, isTerminal, type PhaseName } from './phases.js';
export { parseSnapshot, type Snapshot } from './snapshot.js';
export { History } from './history.js';
export { BlockMap, type Block } from './blocks.js';
export { TaskTable, type Task, type Span } from './tasks.js';
export { Store } from './store.js';
export * as format from './format.js';
