/**
 * Navigation in a log: to its ends, to an offset, or to a fraction; the position of the scroll bar.
 */

import type { LogModel } from '../model';
import type { Anchor } from '../lines/reading';
import type { Scrollbar } from './scrollbar';
import type { Viewport } from './viewport';

export class Navigation {
  constructor(
    private readonly _model: LogModel,
    private readonly _viewport: Viewport,
    private readonly _scrollbar: Scrollbar
  ) {}

  /** Follow new lines at the end, or stop following. */
  setFollow(follow: boolean): void {
    if (follow && this._model.canLater) {
      void this.goTo('end');
    } else {
      this._viewport.follow = follow;
    }
  }

  /** Read around a position and show it. */
  async goTo(anchor: Anchor): Promise<void> {
    this._viewport.follow = anchor === 'end' && !this._model.canLater;
    await this._model.goTo(anchor);
  }

  /** Go to a fraction of the whole, 0 to 1. */
  async goToPart(part: number): Promise<void> {
    if (part > 0.999) {
      await this.goTo('end');
    } else {
      this._viewport.follow = false;
      await (part < 0.001 ? this._model.goTo('start') : this._model.goToPart(part));
    }
  }

  /** Update the scroll bar with the next frame. */
  placeSoon(then: () => void): void {
    this._placing ??= requestAnimationFrame(() => {
      this._placing = null;
      this._place();
      then();
    });
  }

  dispose(): void {
    if (this._placing !== null) {
      cancelAnimationFrame(this._placing);
    }
  }

  private _place(): void {
    const model = this._model;
    const total = Math.max(1, model.total);
    const from = model.position(this._viewport.top) / total;
    const to = model.position(this._viewport.bottom) / total;
    const all = !model.canEarlier && !model.canLater && this._viewport.fits;
    this._scrollbar.set(all ? 0 : model.follow ? 1 - (to - from) : from, all ? 1 : to - from);
  }

  private _placing: number | null = null;
}
