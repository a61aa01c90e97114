/** A fake server with logs in memory, for the models of the log view. */

import { Signal } from '@lumino/signaling';
import type { ILogPage, ILogPageQuery } from '../../src/api/types';
import type { ILogListener, ISubmarine } from '../../src/tokens';

interface IPlace {
  task: string;
  attempt: string;
  stream: string;
}

/** Logs that can grow, are read by offset and are sent to the listener. */
export class FakeLogs {
  readonly logs = new Map<string, Uint8Array>();
  readonly subscriptions: { at: Record<string, number>; tasks: readonly string[] }[] = [];
  /** Offsets and times of the logs; without times a log is one block, before all others. */
  readonly times = new Map<string, [number, number][]>();
  reads: ILogPageQuery[] = [];
  listener: ILogListener | null = null;
  /** Awaited by every read, so that a test can delay it. */
  gate: Promise<void> = Promise.resolve();
  failure: Error | null = null;

  set(key: string, text: string): void {
    this.logs.set(key, new TextEncoder().encode(text));
  }

  /** Append to a log and send the new bytes like the channel, in chunks of `step`. */
  write(key: string, text: string, step = Infinity): void {
    const old = this.logs.get(key) ?? new Uint8Array();
    const added = new TextEncoder().encode(text);
    const all = new Uint8Array(old.length + added.length);
    all.set(old);
    all.set(added, old.length);
    this.logs.set(key, all);
    for (let i = 0; i < added.length; i += step) {
      this.listener?.chunk(placeOf(key), old.length + i, added.slice(i, i + step));
    }
  }

  /** Append to a log and report the new bytes as skipped. */
  writeSkipped(key: string, text: string): void {
    const from = this.logs.get(key)?.length ?? 0;
    const listener = this.listener;
    this.listener = null;
    this.write(key, text);
    this.listener = listener;
    listener?.skip(placeOf(key), from, this.logs.get(key)?.length ?? 0);
  }

  get submarine(): ISubmarine {
    const channel = {
      connected: true,
      log: (
        _job: string,
        options: { at?: Record<string, number>; tasks: readonly string[] },
        listener: ILogListener
      ) => {
        this.subscriptions.push({ at: options.at ?? {}, tasks: options.tasks });
        this.listener = listener;
        return { isDisposed: false, dispose: () => undefined };
      }
    };
    const connectedChanged = new Signal<typeof channel, boolean>(channel);
    const rest = { logs: () => this._list(), logPage: this._page };
    const fake = { rest, channel: { ...channel, connectedChanged }, ready: Promise.resolve() };
    return fake as unknown as ISubmarine;
  }

  private async _list() {
    await this.gate;
    if (this.failure !== null) {
      throw this.failure;
    }
    return [...this.logs].map(([key, data]) => ({ ...placeOf(key), length: data.length }));
  }

  private readonly _page = async (_job: string, query: ILogPageQuery): Promise<ILogPage> => {
    this.reads.push(query);
    await this.gate;
    const keys = Object.keys(query.at);
    const length = (key: string) => this.logs.get(key)?.length ?? 0;
    const at = keys.map(key => (query.end === true ? length(key) : (query.at[key] ?? 0)));
    const blocks = this._blocks(keys);
    if (query.around !== undefined) {
      const chosen = keys.indexOf(query.around);
      const pivot = blocks.findIndex(one => one.log === chosen && one.end > (at[chosen] ?? 0));
      keys.forEach((_key, log) => {
        if (log !== chosen) {
          const before = blocks.slice(0, Math.max(0, pivot)).filter(one => one.log === log);
          at[log] = before.at(-1)?.end ?? 0;
        }
      });
    }
    const lo = [...at];
    const hi = [...at];
    const order: [number, number, number][] = [];
    const half = query.around === undefined ? query.limit : Math.floor(query.limit / 2);
    let left = half;
    if (query.backward === true || query.end === true || query.around !== undefined) {
      for (const { log, begin, end, time } of blocks
        .filter(b => b.begin < (at[b.log] ?? 0))
        .reverse()) {
        const to = Math.min(end, at[log] ?? 0);
        const from = Math.max(begin, to - left);
        left -= to - from;
        if (to > from) {
          lo[log] = from;
          order.unshift([log, to, time]);
        }
      }
    }
    left += query.limit - half;
    if (query.backward !== true && query.end !== true) {
      for (const { log, begin, end, time } of blocks.filter(b => b.end > (at[b.log] ?? 0))) {
        const from = Math.max(begin, at[log] ?? 0);
        const to = Math.min(end, from + left);
        left -= to - from;
        if (to > from) {
          hi[log] = to;
          order.push([log, to, time]);
        }
      }
    }
    const logs = keys.map((key, log) => {
      const all = this.logs.get(key) ?? new Uint8Array();
      const offset = lo[log] ?? 0;
      const at_line = offset === 0 || all[offset - 1] === 10;
      const data = toBase64(all.subarray(offset, hi[log]));
      return { offset, length: all.length, at_line, data };
    });
    return { logs, order };
  };

  /** All blocks in order of time, and of logs for the same time. */
  private _blocks(keys: readonly string[]) {
    const blocks = keys.flatMap((key, log) => {
      const length = this.logs.get(key)?.length ?? 0;
      const known = this.times.get(key) ?? [];
      const last: [number, number] = [length, known.at(-1)?.[1] ?? 0];
      let begin = 0;
      return [...known, last].map(([end, time]) => {
        const block = { log, begin, end: Math.min(end, length), time };
        begin = block.end;
        return block;
      });
    });
    const filled = blocks.filter(({ begin, end }) => end > begin);
    return filled.sort((a, b) => a.time - b.time || a.log - b.log || a.begin - b.begin);
  }
}

function toBase64(data: Uint8Array): string {
  let text = '';
  for (let i = 0; i < data.length; i += 8192) {
    text += String.fromCharCode(...data.subarray(i, i + 8192));
  }
  return btoa(text);
}

function placeOf(key: string): IPlace {
  const [task = '', attempt = '', stream = ''] = key.split('/');
  return { task, attempt, stream };
}
