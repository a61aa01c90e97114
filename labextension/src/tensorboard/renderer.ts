/** TensorBoard in the output of a cell. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject, ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { Widget } from '@lumino/widgets';
import { createFrame, jobIds } from './widget';

/** Services of the application for an output. */
export interface ITensorBoardContext {
  readonly trans: TranslationBundle;
  /** Why TensorBoard cannot be shown, one sentence; empty if it can. */
  readonly problem: () => Promise<string>;
  readonly url: (jobs: readonly string[]) => string;
  readonly openTab: (jobs: readonly string[]) => void;
}

function isObject(data: ReadonlyPartialJSONValue | undefined): data is ReadonlyPartialJSONObject {
  return typeof data === 'object' && data !== null && !Array.isArray(data);
}

/**
 * Show the TensorBoard of an output.
 *
 * In an untrusted notebook, it starts only after a click.
 */
export class TensorBoardRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(mimeType: string, context: ITensorBoardContext) {
    super();
    this._mimeType = mimeType;
    this._context = context;
    this.addClass('jp-Submarine-tensorboardOutput');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const { trans } = this._context;
    const data = model.data[this._mimeType];
    const jobs = isObject(data) ? jobIds(data['jobs']) : [];
    if (jobs.length === 0) {
      this._showText(trans.__('This output does not name a job.'));
      return;
    }
    const problem = await this._context.problem();
    if (this.isDisposed) {
      return;
    }
    if (problem) {
      this._showText(trans.__('TensorBoard of %1: %2', jobs.join(', '), problem));
    } else if (model.trusted) {
      this._show(jobs);
    } else {
      this._showButton(jobs);
    }
  }

  private _showText(text: string): void {
    const line = document.createElement('p');
    line.textContent = text;
    this.node.replaceChildren(line);
  }

  private _showButton(jobs: readonly string[]): void {
    const { trans } = this._context;
    this.node.replaceChildren(
      this._button(trans.__('Show TensorBoard of %1', jobs.join(', ')), () => {
        this._show(jobs);
      })
    );
  }

  private _show(jobs: readonly string[]): void {
    const { trans, url, openTab } = this._context;
    const bar = document.createElement('div');
    bar.className = 'jp-Submarine-tensorboardBar';
    const name = document.createElement('span');
    name.textContent = trans.__('TensorBoard: %1', jobs.join(', '));
    bar.append(
      name,
      this._button(trans.__('Open as Tab'), () => {
        openTab(jobs);
      })
    );
    const title = trans.__('TensorBoard of %1', jobs.join(', '));
    this.node.replaceChildren(bar, createFrame(url(jobs), title));
  }

  private _button(text: string, clicked: () => void): HTMLButtonElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'jp-mod-styled jp-Submarine-tensorboardButton';
    button.textContent = text;
    button.addEventListener('click', clicked);
    return button;
  }

  private readonly _mimeType: string;
  private readonly _context: ITensorBoardContext;
}
