/**
 * The renderer of the job MIME type. It is loaded at startup; the card is loaded with the first
 * output.
 */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Panel } from '@lumino/widgets';
import type { ISubmarine } from '../tokens';
import { MIME_TYPE } from '../tokens';
import type { ICardContext } from './context';
import { readSnapshot } from './snapshot';
import type { CardWidget } from './widget';

export class JobRenderer extends Panel implements IRenderMime.IRenderer {
  constructor(
    private readonly submarine: ISubmarine | null,
    private readonly context: ICardContext
  ) {
    super();
    this.addClass('jp-Submarine-output');
  }

  /** Called again for a newer output of the same cell. */
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._trusted = model.trusted;
    const snapshot = readSnapshot(model.data[MIME_TYPE]);
    if (!snapshot) {
      this.showText(model.data['text/plain']);
      return;
    }
    if (this._card?.model.jobId === snapshot.jobId) {
      this._card.model.setSnapshot(snapshot);
      this._card.update();
      return;
    }
    const call = ++this._call;
    const [{ CardWidget }, { CardModel }] = await Promise.all([
      import('./widget'),
      import('./model')
    ]);
    if (this.isDisposed || call !== this._call) {
      return;
    }
    this._card?.dispose();
    const { jobId } = snapshot;
    this._card = new CardWidget(
      new CardModel(this.submarine, this.context.trans, jobId, snapshot),
      this.context,
      () => this._trusted
    );
    this.addWidget(this._card);
  }

  /** Show the text of an output without a job id. */
  private showText(text: unknown): void {
    this._card?.dispose();
    this._card = null;
    const lines: string[] = (Array.isArray(text) ? text : [text]).filter(
      line => typeof line === 'string'
    );
    const box = document.createElement('pre');
    box.textContent =
      lines.join('') || this.context.trans.__('This output does not name a job of Submarine.');
    this.node.replaceChildren(box);
  }

  private _card: CardWidget | null = null;
  private _trusted = false;
  private _call = 0;
}
