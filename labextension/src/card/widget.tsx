/**
 * A card as a widget: it tells its model whether anybody can see it.
 *
 * Loaded when the first card is shown; `renderer.ts` and `plugin.ts` are what Lab starts with.
 */

import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';
import { Card } from './card';
import type { ICardContext } from './context';
import type { CardModel } from './model';

export class CardWidget extends ReactWidget {
  /** The model is the widget's own from here on. */
  constructor(
    readonly model: CardModel,
    private readonly context: ICardContext,
    private readonly trusted: () => boolean
  ) {
    super();
    this.addClass('jp-Submarine-cardWidget');
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.unwatch();
      this.model.dispose();
      super.dispose();
    }
  }

  protected override render(): React.ReactElement {
    return <Card model={this.model} context={this.context} trusted={this.trusted()} />;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._seen = typeof IntersectionObserver === 'undefined';
    if (!this._seen) {
      this._observer = new IntersectionObserver(
        entries => {
          this._seen = entries.at(-1)?.isIntersecting ?? false;
          this.tell();
        },
        // A little before it comes into view, so that it is fresh by then.
        { rootMargin: '200px' }
      );
      this._observer.observe(this.node);
    }
    document.addEventListener('visibilitychange', this.tell);
    this.tell();
  }

  protected override onBeforeDetach(message: Message): void {
    this.unwatch();
    this.model.setVisible(false);
    super.onBeforeDetach(message);
  }

  private unwatch(): void {
    this._observer?.disconnect();
    this._observer = null;
    document.removeEventListener('visibilitychange', this.tell);
  }

  private readonly tell = (): void => {
    this.model.setVisible(this._seen && document.visibilityState === 'visible');
  };

  private _seen = false;
  private _observer: IntersectionObserver | null = null;
}
