/** Services for all parts of a card: translations and the application's commands. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import React from 'react';

export interface ICardContext {
  readonly trans: TranslationBundle;
  /** Whether the application has this command; Notebook 7 lacks some. */
  has: (command: string) => boolean;
  run: (command: string, args: ReadonlyPartialJSONObject) => Promise<unknown>;
}

export const CardContext = React.createContext<ICardContext | null>(null);

export function useCard(): ICardContext {
  const context = React.useContext(CardContext);
  if (!context) {
    throw new Error('A part of a job card was rendered outside of a card.');
  }
  return context;
}
