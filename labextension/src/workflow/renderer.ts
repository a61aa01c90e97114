/**
 * A workflow in the output of a cell: its stored display, and live updates of its run from the
 * server.
 *
 * Both are HTML. The stored HTML has the trust of its notebook.
 */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';
import { VisibilityObserver } from '../visibility';
import type { IRunPicture, ISubmarine, ISubscription } from '../tokens';
import type { IRunSnapshot } from './snapshot';
import { MIME_TYPE, readSnapshot, textOf } from './snapshot';

/** Renders HTML or text with JupyterLab's rules for untrusted content. */
export type RenderHtml = (
  data: Record<string, string>,
  trusted: boolean
) => Promise<IRenderMime.IRenderer>;

export class WorkflowRenderer extends Panel implements IRenderMime.IRenderer {
  constructor(
    private readonly submarine: ISubmarine | null,
    private readonly renderHtml: RenderHtml,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-Submarine-workflow');
    this._note.className = 'jp-Submarine-workflow-note';
  }

  /** Called again for a newer output of the same cell. */
  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const shown = readSnapshot(model.data[MIME_TYPE]);
    if (shown?.run !== this._run?.run || shown?.url !== this._run?.url) {
      this.unfollow();
      this._renderedTime = 0;
      this.showNote('');
    }
    this._run = shown;
    const time = shown?.time ?? 0;
    // Outputs of the kernel may be older than updates of the server.
    if (time >= this._renderedTime) {
      const html = textOf(model.data['text/html']);
      const data = html
        ? { 'text/html': html }
        : { 'text/plain': textOf(model.data['text/plain']) };
      await this.render(data, model.trusted, time);
    }
    this.follow();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._visibility?.dispose();
      this.unfollow();
      super.dispose();
    }
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._visibility = new VisibilityObserver(this.node, visible => {
      this._visible = visible;
      this.follow();
    });
  }

  protected override onBeforeDetach(message: Message): void {
    this._visibility?.dispose();
    this._visible = false;
    this.follow();
    super.onBeforeDetach(message);
  }

  /** Subscribe to the run while the output is visible. */
  private follow(): void {
    const run = this._run;
    if (!this._visible || !run || !this.submarine) {
      this.unfollow();
      return;
    }
    this._following ??= this.submarine.channel.workflow(
      run.run,
      run.url,
      picture => {
        void this.showPicture(picture);
      },
      problem => {
        this.showProblem(problem);
      }
    );
  }

  private unfollow(): void {
    this._following?.dispose();
    this._following = null;
  }

  private async showPicture({ time, html }: IRunPicture): Promise<void> {
    this._live = true;
    this.showNote('');
    if (time >= this._renderedTime) {
      await this.render({ 'text/html': html }, true, time);
    }
  }

  /** Keep the display, and show why it is not updated. */
  private showProblem(problem: string): void {
    if (!this._live && this._run?.ended === false) {
      this.showNote(this.trans.__('Not live. This is the last stored state: %1', problem));
    }
  }

  private showNote(text: string): void {
    this._note.textContent = text;
    if (text) {
      this.node.append(this._note);
    } else {
      this._note.remove();
    }
  }

  private async render(
    data: Record<string, string>,
    trusted: boolean,
    time: number
  ): Promise<void> {
    this._renderedTime = time;
    const call = ++this._call;
    const fresh = await this.renderHtml(data, trusted);
    if (this.isDisposed || call !== this._call) {
      fresh.dispose();
      return;
    }
    const before = this._shown;
    this._shown = fresh;
    const old = before ? scrolled(before.node) : null;
    const [left, top] = [old?.scrollLeft ?? 0, old?.scrollTop ?? 0];
    this.insertWidget(0, fresh);
    before?.dispose();
    // Keep the scroll position of a large graph.
    scrolled(fresh.node)?.scrollTo(left, top);
  }

  private readonly _note = document.createElement('div');
  private _run: IRunSnapshot | null = null;
  private _shown: IRenderMime.IRenderer | null = null;
  private _following: ISubscription | null = null;
  private _visibility: VisibilityObserver | null = null;
  private _visible = false;
  private _live = false;
  private _renderedTime = 0;
  private _call = 0;
}

/** The scroll container of the graph. */
function scrolled(node: HTMLElement): Element | null {
  return node.querySelector('svg')?.parentElement ?? null;
}
