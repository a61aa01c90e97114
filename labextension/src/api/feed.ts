/**
 * Base of subscriptions: the state that survives a lost connection.
 *
 * A feed converts server messages to listener calls. It does not own a connection.
 */

import type { ClientMessage, ServerMessage } from './wire_types';

/** Messages for a subscription. */
export type FeedMessage = Exclude<ServerMessage, { type: 'hello' }>;

/** One subscription of the page. */
export interface IFeed {
  /** Whether it belongs to a card. The number of card subscriptions is limited. */
  readonly isCard: boolean;
  /** The message that starts the subscription, or resumes it at its position. */
  request(id: number): ClientMessage;
  /**
   * Handle a message. Return the bytes of log data to acknowledge and whether to restart the
   * subscription.
   */
  handle(message: FeedMessage): { bytes?: number; restart?: boolean };
  /** The server cannot be used; report `message` to the listeners. */
  fail(message: string): void;
}

/** Listeners of one feed. */
export class Listeners<T> {
  readonly all = new Set<(value: T) => void>();

  notify(value: T): void {
    for (const listener of [...this.all]) {
      callSafely(() => {
        listener(value);
      });
    }
  }
}

/** A value, or the reason why there is none. */
export type Update<T> = { value: T } | { error: string };

/** A feed of which only the latest value matters. */
export abstract class LatestValueFeed<T> implements IFeed {
  readonly isCard: boolean = true;
  readonly listeners = new Listeners<Update<T>>();
  last: Update<T> | null = null;

  abstract request(id: number): ClientMessage;

  /** The value of a message; null if it contains none. */
  protected abstract read(message: FeedMessage): T | null;

  handle(message: FeedMessage) {
    const value = this.read(message);
    if (value !== null) {
      this.last = { value };
      this.listeners.notify(this.last);
    } else if (message.type === 'error') {
      this.fail(errorText(message));
    }
    return {};
  }

  fail(message: string): void {
    const update = { error: message };
    // Keep a known value for listeners that are added later.
    this.last = this.last && 'value' in this.last ? this.last : update;
    this.listeners.notify(update);
  }
}

/** Call a listener. Log an exception so that the other listeners are still called. */
export function callSafely(call: () => void): void {
  try {
    call();
  } catch (problem) {
    console.error('jupyter-submarine: a listener failed.', problem);
  }
}

/** The error and its fix as one text. */
export function errorText({ error, fix }: { error: string; fix: string }): string {
  return fix ? `${error} ${fix}` : error;
}
