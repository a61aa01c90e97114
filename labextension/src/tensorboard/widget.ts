/** TensorBoard as a tab. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import { createFrame } from './frame';
import { nameOf } from './jobs';

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
