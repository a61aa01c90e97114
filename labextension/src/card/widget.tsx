/**
 * The widget of a card; reports its visibility to the model.
 *
 * Loaded with the first card. Only `renderer.ts` and `plugin.ts` are loaded at startup.
 */

import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';
import { VisibilityObserver } from '../visibility';
import { Card } from './card';
import type { ICardContext } from './context';
import type { CardModel } from './model';

export class CardWidget extends ReactWidget {
  /** The widget owns the model. */
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
      this._visibility?.dispose();
      this.model.dispose();
      super.dispose();
    }
  }

  protected override render(): React.ReactElement {
    return <Card model={this.model} context={this.context} trusted={this.trusted()} />;
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._visibility = new VisibilityObserver(this.node, visible => {
      this.model.setVisible(visible);
    });
  }

  protected override onBeforeDetach(message: Message): void {
    this._visibility?.dispose();
    this.model.setVisible(false);
    super.onBeforeDetach(message);
  }

  private _visibility: VisibilityObserver | null = null;
}
