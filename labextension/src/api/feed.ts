/**
 * What a subscription of the page is: it remembers what outlives a broken connection.
 *
 * A feed turns the server's messages into calls of its listeners; it owns no connection.
 */

import type { ClientMessage, ServerMessage } from './wire_types';

/** What a subscription may be sent. */
export type FeedMessage = Exclude<ServerMessage, { type: 'hello' }>;

/** One subscription of the page. */
export interface IFeed {
  /** Whether it belongs to a card, of which there may be many. */
  readonly card: boolean;
  /** The message that begins it, or begins it again where it stood. */
  request(id: number): ClientMessage;
  /** Takes a message; returns bytes of log data to acknowledge, and whether to begin again. */
  take(message: FeedMessage): { bytes?: number; again?: boolean };
  /** Nobody will send anything: the server extension is not there, or speaks otherwise. */
  fail(sentence: string): void;
}

/** Listeners of one feed; a new one hears at once what is known. */
export class Listeners<T> {
  readonly all = new Set<(value: T) => void>();

  tell(value: T): void {
    for (const listener of [...this.all]) {
      safely(() => {
        listener(value);
      });
    }
  }
}

/** The newest value, or why there is none. */
export type News<T> = { value: T } | { error: string };

/** A feed of which only the newest value counts. */
export abstract class NewestFeed<T> implements IFeed {
  readonly card: boolean = true;
  readonly listeners = new Listeners<News<T>>();
  last: News<T> | null = null;

  abstract request(id: number): ClientMessage;

  /** The value that a message brings; null: it is not about one. */
  protected abstract read(message: FeedMessage): T | null;

  take(message: FeedMessage) {
    const value = this.read(message);
    if (value !== null) {
      this.last = { value };
      this.listeners.tell(this.last);
    } else if (message.type === 'error') {
      this.fail(words(message));
    }
    return {};
  }

  fail(sentence: string): void {
    const news = { error: sentence };
    // A value that is known is worth more to a late listener than the sentence.
    this.last = this.last && 'value' in this.last ? this.last : news;
    this.listeners.tell(news);
  }
}

/** A listener that fails must not silence the others. */
export function safely(call: () => void): void {
  try {
    call();
  } catch (problem) {
    console.error('jupyter-submarine: a listener failed.', problem);
  }
}

/** An error as one sentence with what to do. */
export function words({ error, fix }: { error: string; fix: string }): string {
  return fix ? `${error} ${fix}` : error;
}
