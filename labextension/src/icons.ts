/** Icons of tabs and of the side bar, in the colors of the JupyterLab theme. */

import { LabIcon } from '@jupyterlab/ui-components';

/** A 16 x 16 icon with the fill of JupyterLab's own icons. */
function icon(name: string, ...paths: string[]): LabIcon {
  const shapes = paths.map(path => `<path class="jp-icon3" fill="#616161" d="${path}"/>`).join('');
  return new LabIcon({
    name: `jupyter-submarine:${name}`,
    svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">${shapes}</svg>`
  });
}

/** Jobs: a submarine. */
export const jobsIcon = icon(
  'jobs',
  'M7.5 1.5H10V3H9v3h1.5c2.9 0 4.7 1.5 5 3.7-.3 2.3-2.1 3.8-5 3.8h-5c-1.6 0-2.9-.5-3.8-1.4L.5 13V6.5' +
    'l1.2.9C2.6 6.5 3.9 6 5.5 6h2zM5 8.6a1.1 1.1 0 1 0 0 2.2 1.1 1.1 0 0 0 0-2.2zm3.3 0a1.1 1.1 0 1 0 ' +
    '0 2.2 1.1 1.1 0 0 0 0-2.2zm3.3 0a1.1 1.1 0 1 0 0 2.2 1.1 1.1 0 0 0 0-2.2z'
);

/** Job: a card with a progress bar. */
export const jobIcon = icon(
  'job',
  'M2 2h12a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H2a1 1 0 0 1-1-1V3a1 1 0 0 1 1-1zm.5 1.5v9h11v-9z',
  'M4 5h4v1.5H4zM4 9h8v2H4z'
);

/** Log: lines of text with a mark at the newest one. */
export const logIcon = icon(
  'log',
  'M2 2.5h12V4H2zM2 6h9v1.5H2zM2 9.5h11V11H2zM2 13h4v1.5H2z',
  'M8 12.5h2.5v2.5H8z'
);
