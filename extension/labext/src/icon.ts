// The extension's icon: a chip.

import { LabIcon } from '@jupyterlab/ui-components';

const PINS = [5, 8, 11].map((at) => `M${at} 1v2M${at} 13v2M1 ${at}h2M13 ${at}h2`).join('');

export const chipIcon = new LabIcon({
  name: 'pygpukit:chip',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">
<g class="jp-icon3" fill="#616161"><path fill-rule="evenodd" d="M4 3h8a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zm.5 1.5v7h7v-7zM6 6h4v4H6z"/></g>
<path class="jp-icon-selectable" stroke="#616161" stroke-width="1.4" d="${PINS}"/></svg>`,
});
