/** The log feed: delivers each byte of a job's logs once and in order, across reconnections. */

import type { ILogListener } from '../../tokens';
import { decodeBase64, keyOf, untaken } from '../log_bytes';
import type { ILogPlace } from '../types';
import type { FeedMessage, IFeed } from './feeds';
import { callSafely, errorText } from './feeds';
import type { ClientMessage } from './messages';

/** Logs of one job, each from its own position. */
export class LogFeed implements IFeed {
  readonly isCard = false;
  /** Offset of the next expected byte of each log. */
  readonly at: Map<string, number>;
  /** Logs that were requested again because bytes were missing. */
  private readonly _requested = new Set<string>();

  constructor(
    readonly job: string,
    private readonly _options: {
      tasks: readonly string[];
      at?: Record<string, number>;
      tail?: number;
    },
    private readonly _listener: ILogListener
  ) {
    this.at = new Map(Object.entries(_options.at ?? {}));
  }

  request(id: number): ClientMessage {
    const { tasks, tail } = this._options;
    const wanted = { tasks: [...tasks], at: Object.fromEntries(this.at) };
    const begin = { op: 'subscribe', id, kind: 'log', job: this.job, ...wanted } as const;
    return tail === undefined ? begin : { ...begin, tail };
  }

  handle(message: FeedMessage) {
    switch (message.type) {
      case 'log':
        return this.chunk(message, message.offset, decodeBase64(message.data));
      case 'skip':
        this.skip(message, message.offset, message.to);
        break;
      case 'behind':
        callSafely(() => {
          this._listener.behind(message.seconds);
        });
        break;
      case 'end':
        callSafely(() => {
          this._listener.end();
        });
        break;
      case 'error':
        this.fail(errorText(message));
        break;
    }
    return {};
  }

  fail(message: string): void {
    callSafely(() => {
      this._listener.error(message);
    });
  }

  private chunk(where: ILogPlace, offset: number, data: Uint8Array) {
    const key = keyOf(where);
    const next = this.at.get(key) ?? offset;
    if (offset > next && !this._requested.has(key)) {
      this._requested.add(key);
      return { bytes: data.length, restart: true };
    }
    if (offset > next) {
      // The bytes are still missing after a restart: the log was truncated. Report a gap and
      // continue.
      this.skip(where, next, offset);
    }
    this._requested.delete(key);
    const fresh = untaken(next, offset, data);
    if (fresh.length > 0) {
      const start = Math.max(offset, next);
      this.at.set(key, start + fresh.length);
      callSafely(() => {
        this._listener.chunk(place(where), start, fresh);
      });
    }
    return { bytes: data.length };
  }

  private skip(where: ILogPlace, offset: number, to: number): void {
    const from = Math.max(offset, this.at.get(keyOf(where)) ?? offset);
    if (to > from) {
      this.at.set(keyOf(where), to);
      callSafely(() => {
        this._listener.skip(place(where), from, to);
      });
    }
  }
}

function place({ task, attempt, stream }: ILogPlace): ILogPlace {
  return { task, attempt, stream };
}
