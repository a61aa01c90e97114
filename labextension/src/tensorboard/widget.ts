/** TensorBoard as a tab; its frame, and the job ids in arguments and untrusted outputs. */

import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { isJobId } from '../card/snapshot';

/** Limit of the server. */
export const MAX_JOBS = 20;

/** The unique job ids in `value` in order; empty if any of them is invalid. */
export function jobIds(value: ReadonlyPartialJSONValue | undefined): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_JOBS) {
    return [];
  }
  const found = value.filter(isJobId);
  return found.length === value.length ? [...new Set(found)] : [];
}

/** Key of a set of jobs, independent of their order. */
export function nameOf(jobs: readonly string[]): string {
  return [...jobs].sort().join(',');
}

/**
 * A frame for an address of the Jupyter server.
 *
 * The sandbox forbids navigation of the page and dialogs. The frame has the origin of the page,
 * which TensorBoard needs for authentication.
 */
export function createFrame(url: string, title: string): HTMLIFrameElement {
  const frame = document.createElement('iframe');
  frame.className = 'jp-Submarine-tensorboardFrame';
  frame.title = title;
  frame.loading = 'lazy';
  frame.referrerPolicy = 'same-origin';
  frame.setAttribute(
    'sandbox',
    'allow-scripts allow-same-origin allow-forms allow-popups allow-downloads'
  );
  // The initial theme of JupyterLab; TensorBoard has its own switch.
  const dark = document.body.dataset['jpThemeLight'] === 'false';
  frame.src = dark ? `${url}?darkMode=true` : url;
  return frame;
}

/** The TensorBoard of a set of jobs. */
export class TensorBoardWidget extends Widget {
  readonly jobs: readonly string[];

  constructor(jobs: readonly string[], url: string, trans: TranslationBundle) {
    super();
    this.jobs = jobs;
    this.id = `submarine-tensorboard-${nameOf(jobs)}`;
    this.addClass('jp-Submarine-tensorboard');
    const [first = ''] = jobs;
    this.title.label =
      jobs.length === 1
        ? trans.__('TensorBoard: %1', first)
        : trans.__('TensorBoard: %1 jobs', jobs.length);
    this.title.caption = jobs.join('\n');
    this.title.closable = true;
    this.node.append(createFrame(url, this.title.label));
  }
}
